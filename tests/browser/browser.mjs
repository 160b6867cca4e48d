// Shared by the tests in a browser: Debian's Chromium, driven by playwright-core of build/npm.
//
// A script gets one argument, JSON with `url` (the printed link) and what the test adds. It prints lines for the test and
// exits with 0 if all holds.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const require = createRequire(fileURLToPath(new URL('../../build/npm/package.json', import.meta.url)));
const { chromium } = require('playwright-core');
const axeSource = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

export const given = JSON.parse(process.argv[2]);
const origin = new URL(given.url).origin;
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

// Prints a line for the test, and waits for its answer.
export async function ask(line) {
  console.log(line);
  return (await answers.next()).value;
}

// Fails if the page reports an error, which a violation of its Content-Security-Policy is, or asks another host.
function watch(page, problems) {
  page.on('pageerror', (error) => problems.push(`error in the page: ${error.stack}`));
  page.on('console', (message) => {
    if (message.type() === 'error' && !/status of 4\d\d|ERR_INTERNET_DISCONNECTED/.test(message.text())) problems.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (!['data:', 'blob:'].includes(url.protocol) && url.origin !== origin) problems.push(`request to ${request.url()}`);
  });
}

// Opens the link and calls `work` with the page.
export async function withPage(options, work) {
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
      '--disable-sync', '--disable-dev-shm-usage'],
  });
  const problems = [];
  try {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
    context.setDefaultTimeout(60000);
    const page = await context.newPage();
    watch(page, problems);
    await page.goto(given.url);
    try {
      await work(page, context);
    } catch (error) {
      if (given.shots) await page.screenshot({ path: `${given.shots}/failure.png` });
      console.error(`at ${page.url()}:\n${await page.locator('body').innerText()}`);
      throw error;
    }
    assert.deepEqual(problems, []);
  } finally {
    await browser.close();
  }
}

export const goTo = (page, path) => page.goto(origin + path);

// Fails with the violations of accessibility rules that axe finds.
export async function checkAccessible(page, what) {
  await page.evaluate(axeSource);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  const found = violations.map((v) => `${v.id} (${v.help}): ${v.nodes.map((node) => node.target.join(' ')).join(', ')}`);
  assert.deepEqual(found, [], `axe on ${what}`);
}

// Polls until `condition` returns a true value, and returns it.
export async function until(condition, what, seconds = 60) {
  const end = Date.now() + 1000 * seconds;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`timed out after ${seconds} s waiting until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

// The number of points in the chart with this title.
export async function pointsOf(page, title) {
  const figure = page.locator('figure', { has: page.getByText(title, { exact: true }) }).first();
  const note = await figure.locator('.chart-note').textContent().catch(() => '');
  return Number((note ?? '').replace(/\D/g, ''));
}
