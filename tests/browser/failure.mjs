// A task of a running job is killed: the page shows the report without a reload. Then the job is removed while it is watched.
import assert from 'node:assert/strict';
import { ask, given, goTo, withPage } from './browser.mjs';

await withPage({}, async (page) => {
  await goTo(page, `/jobs/${given.job}`);
  await page.locator('.job-title .state', { hasText: 'Running' }).waitFor();
  await ask('running');
  const report = page.getByRole('region', { name: 'Failure report' });
  await report.waitFor();
  await page.locator('.job-title .state', { hasText: 'Failed' }).waitFor();
  const text = await report.innerText();
  assert.match(text, /worker:1 failed first: .*SIGKILL/);
  assert.match(text, /not restarted: worker:1: .*never/);
  assert.match(text, /<b>not markup<\/b>/, 'the last lines are shown as they are');
  assert.equal(await report.locator('b').count(), 0, 'and are not interpreted');
  await report.getByRole('link', { name: 'all output of worker:1' }).click();
  await page.locator('.log-text', { hasText: '<b>not markup</b>' }).first().waitFor();
  await page.getByRole('tab', { name: /Tasks/ }).click();
  await page.getByRole('row', { name: /worker:1/ }).getByText('Failed').waitFor();
  await page.getByLabel('Timeline of attempts').waitFor();
  await page.getByRole('tab', { name: 'Events' }).click();
  await page.getByRole('row', { name: /worker:1/ }).first().waitFor();
  await ask('reported');
  await page.getByText('This job was removed').waitFor();
});
