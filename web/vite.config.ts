import { defineConfig } from 'vitest/config';
import { fakeServer } from './dev/plugin.ts';

export default defineConfig({
  plugins: [fakeServer()],
  build: {
    target: 'es2022',
    assetsDir: 'assets',
    // Under the page's Content-Security-Policy only images may come from data: URLs.
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
  test: { include: ['test/**/*.test.ts'] },
});
