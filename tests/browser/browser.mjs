// Shared by the tests in a browser: Debian's Chromium, driven by playwright-core of build/npm.
//
// A script gets one argument, JSON with `url` (the printed link) and what the test adds. It prints lines for the test and
// exits with 0 if all holds.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const require = createRequire(fileURLToPath(new URL('../../build/npm/package.json', import.meta.url)));
const { chromium } = require('playwright-core');
const axeSource = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

export const given = JSON.parse(process.argv[2]);
const origin = new URL(given.url).origin;
let shown = origin;
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
    if (message.type() === 'error' && !/status of 4\d\d|ERR_(CONNECTION_|EMPTY_|INCOMPLETE_|SOCKET_)/.test(message.text())) problems.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (!['data:', 'blob:'].includes(url.protocol) && url.origin !== shown) problems.push(`request to ${request.url()}`);
  });
}

// Stands between the browser and the server. drop() ends all connections and refuses new ones until accept().
export class Proxy {
  sockets = new Set();
  refuses = false;

  async start() {
    this.server = http.createServer((request, response) => this.pass(request, response));
    this.server.on('connection', (socket) => {
      if (this.refuses) return socket.destroy();
      this.sockets.add(socket);
      socket.on('close', () => this.sockets.delete(socket));
    });
    await new Promise((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    this.origin = `http://127.0.0.1:${this.server.address().port}`;
  }

  pass(request, response) {
    // The server checks whom a request is for and which page it is from.
    const headers = { ...request.headers, host: new URL(origin).host };
    if (headers.origin) headers.origin = origin;
    const onward = http.request(origin + request.url, { method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    request.pipe(onward);
  }

  drop() {
    this.refuses = true;
    for (const socket of this.sockets) socket.destroy();
  }

  accept() {
    this.refuses = false;
  }

  close() {
    this.drop();
    this.server.close();
  }
}

// Opens the link and calls `work` with the page.
export async function withPage({ proxy, ...options }, work) {
  if (proxy) {
    await proxy.start();
    shown = proxy.origin;
  }
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
    await page.goto(shown + given.url.slice(origin.length));
    await page.waitForURL((url) => url.pathname !== '/login');
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
    proxy?.close();
  }
}

export const goTo = (page, path) => page.goto(shown + path);

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
