import { describe, expect, it, vi } from 'vitest';
import type { Checkpoint, DiffLine, Graph, JobEvent, JobSummary, Series } from '../src/api.ts';

vi.stubGlobal('window', { matchMedia: () => ({ matches: false, addEventListener: () => {} }) });
const { assignSlots, SLOTS } = await import('../src/chart/colors.ts');
const { changesOf } = await import('../src/pages/job/changes.ts');
const { foldDiff, hasChanges } = await import('../src/pages/job/diff.ts');
const { deviceLabel, layerOf, layoutGraph, modelOf } = await import('../src/pages/job/graphLayout.ts');
const { chartsOf, findSeries } = await import('../src/pages/job/series.ts');
const { emptyList, jobAt, pagesOf, withChanges, withPage, PAGE } = await import('../src/pages/jobList.ts');

describe('colours', () => {
  it('keeps what is kept and gives few jobs different ones', () => {
    const ids = Array.from({ length: SLOTS }, (_, i) => `job-${i}`);
    const slots = assignSlots(ids, new Map([['job-3', 7]]));
    expect(slots.get('job-3')).toBe(7);
    expect(new Set(slots.values()).size).toBe(SLOTS);
  });
  it('resolves a collision of kept colours', () => {
    const slots = assignSlots(['a', 'b'], new Map([['a', 2], ['b', 2]]));
    expect(slots.get('a')).toBe(2);
    expect(slots.get('b')).not.toBe(2);
  });
  it('continues with dashes when there are more jobs than colours', () => {
    const ids = Array.from({ length: 3 * SLOTS }, (_, i) => `job-${i}`);
    expect(new Set(assignSlots(ids, new Map()).values()).size).toBe(3 * SLOTS);
  });
});

describe('changes', () => {
  it('sends only what differs from the file', () => {
    const parameters = [{ name: 'train.steps', value: '100' }, { name: 'name', value: 'x' }];
    expect(changesOf(parameters, { 'train.steps': '200', name: 'x' })).toEqual(['train.steps=200']);
  });
});

describe('diff', () => {
  const same = (n: number): DiffLine[] => Array.from({ length: n }, (_, i) => ({ change: 'same', text: `s${i}` }));
  it('folds what is far from a change', () => {
    const rows = foldDiff([...same(10), { change: 'added', text: 'x' }, ...same(10)], 2);
    expect(rows.map((row) => (row.kind === 'fold' ? `fold ${row.lines.length}` : row.line.change))).toEqual(
      ['fold 8', 'same', 'same', 'added', 'same', 'same', 'fold 8']);
  });
  it('folds no single line and sees no change in equal files', () => {
    const rows = foldDiff([...same(3), { change: 'removed', text: 'x' }], 2);
    expect(rows.every((row) => row.kind === 'line')).toBe(true);
    expect(hasChanges(same(3))).toBe(false);
  });
});

describe('graph', () => {
  const node = (name: string, op: string, device: string, bytes: number | null) => ({ name, op, device, inputs: [], shape: null, bytes });
  const graph: Graph = {
    nodes: [
      node('fc1/weight/part_0', 'VariableV2', '/job:ps/task:0', 60), node('fc1/weight/part_1', 'VariableV2', '/job:ps/task:1', 40),
      node('fc1/bias', 'VariableV2', '/job:ps/task:1', 4), node('chief_0/fc1/addmm', 'addmm', '/job:chief/task:0', null), node('train/fc1/bias', 'ApplySgd', '/job:ps/task:1', null),
    ],
    devices: [{ device: '/job:ps/task:0', task: 'ps:0', bytes: 60 }, { device: '/job:ps/task:1', task: 'ps:1', bytes: 44 }],
  };
  it('joins parts and sums bytes', () => {
    const model = modelOf(graph);
    expect(model.layers.map((l) => [l.name, l.bytes, l.variables.map((v) => v.name), l.operations.length])).toEqual([['fc1', 104, ['fc1/weight', 'fc1/bias'], 2]]);
    expect(model.tasks).toEqual(['chief:0']);
    expect([layerOf('worker_1/gradients/conv1/weight'), deviceLabel('/job:ps/replica:0/task:3/device:CPU:0')]).toEqual(['conv1', 'ps:3']);
  });
  it('draws a collapsed layer with one line a device', () => {
    const model = modelOf(graph);
    expect(layoutGraph(model, new Set()).edges.map((e) => [e.to, e.bytes])).toEqual([['device /job:ps/task:0', 60], ['device /job:ps/task:1', 44]]);
    expect(layoutGraph(model, new Set(['fc1'])).boxes.filter((b) => b.kind === 'variable').map((b) => b.label)).toEqual(['weight', 'bias']);
  });
});

describe('charts of a job', () => {
  const series = (name: string): Series => ({ job: 'j', name, count: 0, steps: [], times: [], values: [] });
  it('puts training and evaluation in one chart, loss first', () => {
    expect(chartsOf(['eval/accuracy', 'weights', 'accuracy', 'loss'].map(series)).map((c) => [c.title, c.series.length])).toEqual([['loss', 1], ['accuracy', 2], ['weights', 1]]);
  });
  it('splits charts with too many curves', () => {
    expect(chartsOf(Array.from({ length: 9 }, (_, i) => series(`layer${i}/norm`))).length).toBe(9);
    expect(findSeries([series('train/loss')], 'loss')?.name).toBe('train/loss');
  });
});

describe('list of jobs', () => {
  const job = (i: number, state = 'Running'): JobSummary => ({ id: `j${i}`, state } as JobSummary);
  const page = (from: number, total = 10000) => ({ total, states: {}, jobs: Array.from({ length: PAGE }, (_, i) => job(from + i)) });
  it('holds a bounded number of pages around the visible one', () => {
    let list = emptyList;
    for (let i = 0; i < 100; i++) list = withPage(list, i, page(i * PAGE));
    expect(list.pages.size).toBeLessThanOrEqual(12);
    expect(jobAt(list, 99 * PAGE + 5)?.id).toBe('j9905');
    expect(jobAt(list, 0)).toBe(null);
    expect(pagesOf(95, 210)).toEqual([0, 1, 2]);
  });
  it('replaces changed jobs and reports when the order may differ', () => {
    const list = withPage(emptyList, 0, page(0));
    const same = withChanges(list, [job(3)], []);
    expect(same.stale).toBe(false);
    expect(withChanges(list, [job(3, 'Failed')], []).stale).toBe(true);
    expect(jobAt(withChanges(list, [job(3, 'Failed')], []).list, 3)?.state).toBe('Failed');
    expect(withChanges(list, [job(123456)], []).stale).toBe(true);
    expect(withChanges(list, [], ['j7']).stale).toBe(true);
    expect(withChanges(list, [], ['other']).stale).toBe(false);
  });
});

describe('small parts', () => {
  it('joins events without duplicates', async () => {
    vi.stubGlobal('document', { addEventListener: () => {}, hidden: false });
    vi.stubGlobal('location', { pathname: '/', search: '' });
    const { mergeEvents } = await import('../src/pages/job/Events.tsx');
    const event = (sequence: number) => ({ sequence }) as JobEvent;
    expect(mergeEvents([event(1), event(2)], [event(2), event(3)]).map((e) => e.sequence)).toEqual([1, 2, 3]);
    expect(mergeEvents([], [event(5)]).length).toBe(1);
  });
  it('lists the metrics of checkpoints once', async () => {
    const { metricNames } = await import('../src/pages/job/Checkpoints.tsx');
    expect(metricNames([{ metrics: { b: 1 } }, { metrics: { a: 1, b: 2 } }] as unknown as Checkpoint[])).toEqual(['a', 'b']);
  });
});
