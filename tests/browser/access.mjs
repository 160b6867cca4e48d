// Both themes, a phone, the keyboard alone, and the rules of accessibility on every page.
import assert from 'node:assert/strict';
import { checkAccessible, given, goTo, until, withPage } from './browser.mjs';

const { job } = given;
const tabs = ['overview', 'tasks', 'logs', 'resources', 'events', 'file', 'checkpoints', 'graph'];
const paths = ['/', ...tabs.map((tab) => `/jobs/${job}?tab=${tab}`), '/runs', `/compare?job=${job}`, '/jobs/none', '/nothing'];

const settled = (page) => until(async () => (await page.locator('.loading').count()) === 0, 'the page is loaded');

async function checkAll(page, what) {
  for (const path of paths) {
    await goTo(page, path);
    await page.locator('main *').first().waitFor();
    await settled(page);
    await checkAccessible(page, `${path} ${what}`);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(over <= 0, `${path} ${what} is ${over} px wider than the window`);
  }
}

async function toggleTheme(page) {
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await goTo(page, '/');
  const light = await background();
  await page.getByRole('button', { name: 'Use the dark theme' }).click();
  const dark = await background();
  assert.notEqual(dark, light);
  await page.reload();
  assert.equal(await background(), dark, 'the choice is kept');
}

async function useKeyboard(page) {
  const focused = (attribute) => page.evaluate((name) => document.activeElement?.getAttribute(name), attribute);
  await goTo(page, '/');
  await page.locator('[data-row="0"]').waitFor();
  await page.keyboard.press('Tab');
  assert.equal(await focused('class'), 'skip');
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.keyboard.press('/');
  assert.equal(await focused('type'), 'search');
  await page.keyboard.type('digits');
  await until(() => page.url().includes('search=digits'), 'the search is in the address');
  await page.locator(`[data-job="${job}"]`).waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('j');
  await until(async () => (await focused('data-job')) === job, 'the first row has the focus');
  await page.keyboard.press('x');
  await page.getByText('1 job selected').waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'digits' }).waitFor();
  await page.keyboard.press('3');
  await page.getByRole('log').waitFor();
  await page.getByRole('tab', { name: 'Logs' }).focus();
  await page.keyboard.press('ArrowRight');
  await page.getByRole('tab', { name: 'Resources', selected: true }).waitFor();
  await page.keyboard.press('1');
  const chart = page.locator('figure canvas').first();
  await chart.focus();
  await page.keyboard.press('ArrowLeft');
  await page.locator('.readout').waitFor();
  await page.keyboard.press('g');
  await page.keyboard.press('r');
  await page.locator('[data-run]').first().waitFor();
}

await withPage({ colorScheme: 'light' }, async (page, context) => {
  await checkAll(page, 'light');
  await useKeyboard(page);
  await toggleTheme(page);
  await checkAll(page, 'dark');
  await page.setViewportSize({ width: 390, height: 844 });
  await checkAll(page, 'on a phone');
  await goTo(page, '/');
  await page.locator('[data-row="0"]').waitFor();
  await context.clearCookies();
  await page.getByRole('link', { name: 'Runs' }).click();
  await page.getByText('This page needs a new link').waitFor();
  await page.getByText('muster dashboard', { exact: true }).waitFor();
});
