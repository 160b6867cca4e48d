// Takes screenshots of pages in both themes and three widths, and runs axe on each.
//   node dev/shots.mjs URL FOLDER [NAME=PATH…]
// playwright-core and axe-core come from ../build/npm (scripts/test installs them).
import { createRequire } from 'node:module';
import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const require = createRequire(fileURLToPath(new URL('../../build/npm/package.json', import.meta.url)));
const { chromium } = require('playwright-core');
const axe = require.resolve('axe-core/axe.min.js');
const [url, folder, ...pages] = process.argv.slice(2);
const widths = (process.env.WIDTHS ?? '1440,1024,390').split(',').map(Number);
const themes = (process.env.THEMES ?? 'light,dark').split(',');
mkdirSync(folder, { recursive: true });

const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
for (const theme of themes) {
  for (const width of widths) {
    const context = await browser.newContext({ viewport: { width, height: width < 500 ? 844 : 900 }, colorScheme: theme, bypassCSP: process.env.AXE === '1' });
    const page = await context.newPage();
    page.on('console', (message) => ['error', 'warning'].includes(message.type()) && console.log(`${message.type()}: ${message.text()}`));
    page.on('pageerror', (error) => console.log(`page error: ${error.stack}`));
    for (const item of pages) {
      const [name, ...rest] = item.split('=');
      await page.goto(url + rest.join('='), { waitUntil: 'load' });
      await page.waitForTimeout(1200);
      await page.screenshot({ path: `${folder}/${name}-${width}-${theme}.png` });
      if (process.env.AXE === '1') {
        await page.addScriptTag({ path: axe });
        const { violations } = await page.evaluate(() => globalThis.axe.run());
        for (const v of violations) console.log(`axe ${name} ${width} ${theme}: ${v.id}: ${v.nodes.map((n) => n.target.join(' ')).slice(0, 3).join(' | ')}: ${v.nodes[0].failureSummary.split('\n')[1]}`);
      }
    }
    await context.close();
  }
}
await browser.close();
