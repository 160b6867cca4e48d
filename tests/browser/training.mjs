// A running job: its curve grows, its log is filtered, it is stopped, changed and run again.
import assert from 'node:assert/strict';
import { goTo, given, pointsOf, Proxy, until, withPage } from './browser.mjs';

const { job } = given;

async function seeCurveGrow(page) {
  await page.getByRole('link', { name: 'digits', exact: true }).click();
  await page.getByRole('heading', { name: 'digits' }).waitFor();
  const first = await until(() => pointsOf(page, 'loss'), 'the chart of the loss has points');
  await until(async () => (await pointsOf(page, 'loss')) > first, 'the curve grows without a reload');
  const label = await page.locator('figure canvas').first().getAttribute('aria-label');
  assert.match(label, /^loss, last values: .*\d/);
}

async function filterLogs(page) {
  await page.getByRole('tab', { name: 'Logs' }).click();
  await page.locator('.log-line').first().waitFor();
  await page.getByRole('combobox', { name: 'Task' }).selectOption('worker:0');
  await until(async () => {
    const tasks = await page.locator('.log-task').allTextContents();
    return tasks.length > 0 && tasks.every((task) => task === 'worker:0');
  }, 'only lines of worker:0 are shown');
  await page.getByRole('combobox', { name: 'Task' }).selectOption('');
  await page.getByLabel('Search in the output').fill('step [0-9]+/');
  await until(async () => {
    const lines = await page.locator('.log-text').allTextContents();
    return lines.length > 0 && lines.every((line) => /step [0-9]+\//.test(line));
  }, 'only matching lines are shown');
  assert.ok((await page.locator('.log-text mark').count()) > 0, 'matches are marked');
  const before = await page.locator('.log-line').count();
  await until(async () => (await page.locator('.log-line').count()) > before, 'the filtered log grows');
  const texts = await page.locator('.log-text').allTextContents();
  const steps = texts.map((text) => Number(/step ([0-9]+)\//.exec(text)[1]));
  assert.deepEqual(steps, [...steps].sort((a, b) => a - b), 'lines are in order');
  assert.equal(new Set(texts).size, texts.length, 'no line is shown twice');
}

// The lines that the job prints while the connection is lost are read afterwards: none is missing, none is there twice.
async function loseConnection(page) {
  proxy.drop();
  await page.getByText('reconnecting').waitFor();
  const last = () => page.locator('.log-text').last().textContent();
  const before = await last();
  proxy.accept();
  await page.getByText('live', { exact: true }).waitFor();
  await until(async () => (await last()) !== before, 'the log goes on');
  const steps = (await page.locator('.log-text').allTextContents()).map((text) => /^step ([0-9]+)\//.exec(text)).filter(Boolean).map((match) => Number(match[1]));
  steps.forEach((step, i) => i > 0 && assert.equal(step - steps[i - 1], 20, `after step ${steps[i - 1]}`));
}

async function stop(page) {
  await page.getByRole('button', { name: 'Stop…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Stop', exact: true }).click();
  await page.locator('.job-title .state', { hasText: 'Stopped' }).waitFor();
}

async function runAgain(page) {
  await page.getByRole('button', { name: 'Change and run again…' }).click();
  const steps = page.getByRole('dialog').getByLabel('train.steps');
  await steps.fill('many');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByRole('dialog').getByRole('alert').filter({ hasText: 'train.steps' }).waitFor();
  await steps.fill('40');
  // A name of its own gives the job a model dir of its own, without the checkpoints of the first one.
  await page.getByLabel('Name of the new job').fill('short');
  await page.getByRole('dialog').getByText('train.steps=40').waitFor();
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await until(() => !page.url().includes(job), 'the page shows the new job');
  await page.locator('.job-title .state', { hasText: 'Succeeded' }).waitFor();
  await page.getByText(/^step [0-9]+ of 40$/).waitFor();
  return decodeURIComponent(new URL(page.url()).pathname.split('/').pop());
}

// The files of both jobs differ in the steps.
async function compareFiles(page, next) {
  await goTo(page, `/jobs/${next}?tab=file&with=${job}`);
  await page.locator('.diff-added', { hasText: ' steps: 40' }).first().waitFor();
}

async function annotate(page, next) {
  await goTo(page, `/jobs/${next}`);
  await page.getByRole('button', { name: 'Notes…' }).click();
  await page.getByLabel('Tags, separated').fill('short, from the page');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.locator('.job-title .tag', { hasText: 'from the page' }).waitFor();
  await goTo(page, '/?search=from the page');
  await page.locator(`[data-job="${next}"]`).waitFor();
}

const proxy = new Proxy();
await withPage({ proxy }, async (page) => {
  await seeCurveGrow(page);
  await filterLogs(page);
  await loseConnection(page);
  await stop(page);
  const next = await runAgain(page);
  await compareFiles(page, next);
  await annotate(page, next);
  console.log(next);
});
