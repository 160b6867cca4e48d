import { describe, expect, it } from 'vitest';
import type { Comparison } from '../src/api.ts';
import { groupChoices, groupRuns } from '../src/runs/groups.ts';
import { compileFilter, csvCell, differing, sortRows, toCsv, type Column, type RunRow } from '../src/runs/table.ts';

const columns: Column[] = [
  { id: 'state', title: 'State', kind: 'run' }, { id: 'p train.lr', title: 'train.lr', kind: 'parameter' },
  { id: 'p train.seed', title: 'train.seed', kind: 'parameter' }, { id: 'm loss', title: 'loss', kind: 'metric' },
];
const row = (id: string, state: string, lr: string, loss: number | null): RunRow => ({ id, values: { state, 'p train.lr': lr, 'p train.seed': '1', 'm loss': loss } });
const rows = [row('a', 'Failed', '0.1', 2), row('b', 'Succeeded', '1e-2', 0.5), row('c', 'Succeeded', '0.1', null)];
const ids = (list: readonly RunRow[]) => list.map((r) => r.id).join('');
const filtered = (text: string) => ids(rows.filter(compileFilter(text, columns).matches));

describe('filter', () => {
  it('matches words in any column', () => {
    expect(filtered('succ')).toBe('bc');
    expect(filtered('')).toBe('abc');
  });
  it('compares numbers and text', () => {
    expect(filtered('loss<1')).toBe('b');
    expect(filtered('lr=0.01')).toBe('b');
    expect(filtered('lr>=0.1 state=failed')).toBe('a');
    expect(filtered('state!=failed')).toBe('bc');
    expect(filtered('state:ucc')).toBe('bc');
  });
  it('names columns that do not exist', () => {
    expect(compileFilter('nothing>1', columns).unknown).toEqual(['nothing']);
  });
});

describe('order', () => {
  it('sorts numbers as numbers and absent values last', () => {
    expect(ids(sortRows(rows, { column: 'm loss', descending: false }))).toBe('bac');
    expect(ids(sortRows(rows, { column: 'm loss', descending: true }))).toBe('abc');
    expect(ids(sortRows(rows, { column: 'p train.lr', descending: false }))).toBe('bac');
    expect(ids(sortRows(rows, null))).toBe('abc');
  });
  it('finds the columns that differ', () => {
    expect(differing(columns, rows).map((c) => c.id)).toEqual(['state', 'p train.lr', 'm loss']);
  });
});

describe('CSV', () => {
  it('quotes and defuses formulas', () => {
    expect(['a,b', 'say "x"', '=1+1', '-3', -3, null].map(csvCell)).toEqual(['"a,b"', '"say ""x"""', "'=1+1", '-3', '-3', '']);
    expect(toCsv(['a', 'b'], [[1, 'x\ny']])).toBe('a,b\r\n1,"x\ny"\r\n');
  });
});

describe('groups', () => {
  const comparison: Comparison = {
    jobs: ['j1', 'j2', 'j3'],
    parameters: [
      { name: 'name', differs: false, values: ['mnist', 'mnist', 'mnist'] }, { name: 'train.lr', differs: true, values: ['0.1', '0.1', '0.01'] },
      { name: 'train.seed', differs: true, values: ['1', '2', '1'] }, { name: 'model_dir', differs: true, values: ['a', 'b', 'c'] },
    ],
    metrics: [], problems: [],
  };
  it('groups by a parameter, by all but the seed, or by name', () => {
    expect(groupRuns(comparison, 'by:train.lr')?.map((g) => [g.label, g.jobs])).toEqual([['lr=0.1', ['j1', 'j2']], ['lr=0.01', ['j3']]]);
    expect(groupRuns(comparison, 'but:train.seed')?.map((g) => g.jobs)).toEqual([['j1', 'j2'], ['j3']]);
    expect(groupRuns(comparison, 'name')?.map((g) => g.label)).toEqual(['mnist']);
    expect(groupRuns(comparison, 'none')).toBe(null);
  });
  it('offers what differs', () => {
    expect(groupChoices(comparison).map((c) => c.id)).toEqual(['none', 'but:train.seed', 'name', 'by:train.lr', 'by:train.seed']);
  });
});
