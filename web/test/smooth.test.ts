import { describe, expect, it } from 'vitest';
import { groupCurves, median, smooth, trend } from '../src/chart/smooth.ts';

describe('smooth', () => {
  it('begins with the first value and keeps a constant', () => {
    expect(smooth([4, 4, 4], 0.9).map((v) => v!.toFixed(6))).toEqual(['4.000000', '4.000000', '4.000000']);
    expect(smooth([1, 3], 0)).toEqual([1, 3]);
  });
  it('weighs the past', () => {
    const [first, second] = smooth([0, 1], 0.5);
    expect(first).toBe(0);
    expect(second).toBeCloseTo(2 / 3);
  });
  it('does not spread values that are not finite', () => {
    expect(smooth([1, null, NaN, 1], 0.5)).toEqual([1, null, null, 1]);
  });
});

describe('groupCurves', () => {
  it('returns mean and deviation of a sample at common positions', () => {
    const group = groupCurves([{ xs: [1, 2], ys: [1, 2] }, { xs: [1, 2], ys: [3, 6] }]);
    expect(group.xs).toEqual([1, 2]);
    expect(group.mean).toEqual([2, 4]);
    expect(group.high[0]! - group.mean[0]!).toBeCloseTo(Math.SQRT2);
    expect(group.counts).toEqual([2, 2]);
  });
  it('interpolates and counts a curve only within its range', () => {
    const group = groupCurves([{ xs: [0, 10], ys: [0, 10] }, { xs: [5], ys: [7] }]);
    expect(group.xs).toEqual([0, 5, 10]);
    expect(group.mean).toEqual([0, 6, 10]);
    expect(group.counts).toEqual([1, 2, 1]);
  });
  it('leaves gaps out and accepts empty input', () => {
    expect(groupCurves([]).xs).toEqual([]);
    expect(groupCurves([{ xs: [1, 2], ys: [null, 4] }]).xs).toEqual([2]);
  });
  it('uses a grid for many different positions', () => {
    const curve = (shift: number) => ({ xs: Array.from({ length: 400 }, (_, i) => i + shift), ys: Array.from({ length: 400 }, () => 1) });
    const group = groupCurves([curve(0), curve(0.5)], 300);
    expect(group.xs.length).toBe(300);
    expect(group.mean.every((v) => v === 1)).toBe(true);
  });
});

describe('trend', () => {
  const ramp = (from: number, to: number) => Array.from({ length: 50 }, (_, i) => from + ((to - from) * i) / 49);
  it('compares the last parts', () => {
    expect(trend(ramp(2, 1))).toBe('falling');
    expect(trend(ramp(1, 2))).toBe('rising');
    expect(trend(ramp(1, 1.0001))).toBe('flat');
    expect(trend([...ramp(2, 1), null])).toBe('not finite');
    expect(trend([1, 2])).toBe('unknown');
  });
  it('has a median', () => {
    expect(median([3, null, 1, 2])).toBe(2);
    expect(median([])).toBe(null);
  });
});
