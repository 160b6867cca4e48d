import { describe, expect, it } from 'vitest';
import { lowerBound, nearest, readingsAt } from '../src/chart/plot.ts';
import { linearTicks, logTicks, padded, rangeOf, timeTicks } from '../src/chart/scale.ts';
import { thin } from '../src/chart/Spark.tsx';

describe('scale', () => {
  it('finds the range of finite values', () => {
    expect(rangeOf([[1, null, 5], [NaN, -2]])).toEqual({ min: -2, max: 5 });
    expect(rangeOf([[0, -1, 3]], true)).toEqual({ min: 3, max: 3 });
    expect(rangeOf([[null]])).toBe(null);
  });
  it('gives a range of one value a height', () => {
    for (const log of [false, true]) {
      const { min, max } = padded({ min: 3, max: 3 }, log);
      expect(min).toBeLessThan(3);
      expect(max).toBeGreaterThan(3);
    }
  });
  it('places ticks at round values', () => {
    expect(linearTicks({ min: 0, max: 1 }, 5)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
    expect(linearTicks({ min: 0, max: 600 * 1048576 }, 5, true).map((v) => v / 1048576)).toEqual([0, 128, 256, 384, 512]);
    expect(logTicks({ min: 0.01, max: 100 }, 5)).toEqual([0.01, 0.1, 1, 10, 100]);
    expect(timeTicks({ min: 61, max: 400 }, 4)).toEqual([120, 240, 360]);
  });
  it('finds points by binary search', () => {
    expect([0, 1, 1.5, 9].map((x) => lowerBound([1, 2, 3], x))).toEqual([0, 0, 1, 3]);
    expect([0, 1.4, 1.6, 9].map((x) => nearest([1, 2, 3], x))).toEqual([0, 0, 1, 2]);
  });
  it('reads one point of each curve', () => {
    const base = { label: '', color: '' };
    const readings = readingsAt([{ ...base, id: 'a', xs: [1, 5], ys: [10, 50] }, { ...base, id: 'b', xs: [4], ys: [null] }, { ...base, id: 'c', xs: [4], ys: [1], quiet: true }], 4);
    expect(readings.map((r) => [r.series.id, r.x, r.y])).toEqual([['a', 5, 50]]);
  });
  it('keeps peaks when it thins values', () => {
    const values = Array.from({ length: 1000 }, (_, i) => (i === 613 ? 99 : i === 614 ? -99 : 0));
    const thinned = thin(values, 50);
    expect(thinned.length).toBeLessThanOrEqual(50);
    expect(Math.max(...(thinned as number[]))).toBe(99);
    expect(Math.min(...(thinned as number[]))).toBe(-99);
  });
});
