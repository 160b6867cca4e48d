// Two jobs side by side, then five seeds as one group.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { given, goTo, until, withPage } from './browser.mjs';

async function downloaded(page, name) {
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name, exact: true }).click()]);
  return readFileSync(await file.path());
}

async function compareTwo(page) {
  await goTo(page, '/runs');
  for (const job of given.jobs.slice(0, 2)) await page.locator('tr', { has: page.locator(`[data-run="${job}"]`) }).getByRole('checkbox').check();
  await page.getByRole('button', { name: 'Compare', exact: true }).click();
  await page.getByRole('heading', { name: '2 runs' }).waitFor();
  await page.locator('.shared-legend li').nth(1).waitFor();
  assert.equal(await page.locator('.shared-legend li').count(), 2);
  const table = page.getByRole('region', { name: 'Compared runs' });
  const heads = await table.locator('th').allInnerTexts();
  assert.ok(heads.includes('train.seed') && heads.some((head) => head === 'loss last'), heads.join());
  assert.ok(!heads.includes('train.batch_size'), 'equal parameters are hidden');
  await page.getByLabel('all parameters').check();
  await until(async () => (await table.locator('th').allInnerTexts()).includes('train.batch_size'), 'all parameters are shown');
  await page.getByLabel('Filter the table').fill(`seed=${given.seeds[0]}`);
  await until(async () => (await table.locator('tbody tr').count()) === 1, 'the filter leaves one run');
}

async function groupOfSeeds(page) {
  await goTo(page, `/compare?${given.jobs.map((job) => `job=${job}`).join('&')}`);
  await page.getByRole('heading', { name: `${given.jobs.length} runs` }).waitFor();
  await page.getByLabel('Group').selectOption({ label: 'all but seed' });
  await page.locator('.shared-legend li', { hasText: `(${given.jobs.length})` }).waitFor();
  await page.getByText('mean ± standard deviation').first().waitFor();
  assert.equal(await page.locator('.shared-legend li').count(), 1);
  await page.getByLabel('X axis').selectOption('relative');
  await page.getByLabel('Smoothing').fill('0.6');
  await page.getByLabel('log scale').check();
  await until(() => /x=relative/.test(page.url()) && /smoothing=0.6/.test(page.url()) && /log=1/.test(page.url()), 'the settings are in the address');
  await page.reload();
  await page.locator('.shared-legend li', { hasText: `(${given.jobs.length})` }).waitFor();
}

async function exports(page) {
  const png = await downloaded(page, 'PNG');
  assert.equal(png.subarray(1, 4).toString(), 'PNG');
  const curves = (await downloaded(page, 'CSV of curves')).toString().trim().split('\r\n');
  assert.equal(curves[0], 'job,metric,step,time,value');
  for (const job of given.jobs) assert.ok(curves.some((line) => line.startsWith(`${job},loss,`)), job);
  const table = (await downloaded(page, 'CSV of table')).toString().trim().split('\r\n');
  assert.equal(table.length, given.jobs.length + 1);
}

// A job keeps its colour between visits and selections.
async function coloursStay(page) {
  const color = async (jobs) => {
    await goTo(page, `/compare?${jobs.map((job) => `job=${job}`).join('&')}`);
    const row = page.locator('tr', { has: page.locator(`[data-run="${given.jobs[1]}"]`) });
    return row.locator('.swatch').evaluate((swatch) => getComputedStyle(swatch).backgroundColor);
  };
  const first = await color(given.jobs.slice(0, 2));
  assert.equal(await color(given.jobs.slice(1)), first);
}

await withPage({ acceptDownloads: true }, async (page) => {
  await compareTwo(page);
  await groupOfSeeds(page);
  await exports(page);
  await coloursStay(page);
});
