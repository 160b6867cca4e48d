import { describe, expect, it } from 'vitest';
import { bytes, compact, duration, eta, integer, number, percent, secondsBetween } from '../src/format.ts';

describe('format', () => {
  it('writes durations with at most two units', () => {
    expect([0, 59.9, 60, 61, 3600, 3661, 86400, 90000].map(duration)).toEqual(['0s', '59s', '1m', '1m 1s', '1h', '1h 1m', '1d', '1d 1h']);
    expect(duration(null)).toBe('–');
  });
  it('writes numbers with significant digits', () => {
    expect([0, 0.123456, 12.3456, 1234567, 0.00001234, -0.5, 3e12].map((v) => number(v))).toEqual(['0', '0.1235', '12.35', '1\u202f234\u202f567', '1.23e−5', '−0.5', '3.00e12']);
    expect([null, NaN, Infinity].map((v) => number(v))).toEqual(['–', 'NaN', '∞']);
  });
  it('shortens rates and sizes', () => {
    expect([950, 9999, 12345, 4.1e6, 2.5].map(compact)).toEqual(['950', '9\u202f999', '12.3k', '4.1M', '2.5']);
    expect([0, 1023, 1024, 1.5 * 1048576, 123 * 1073741824].map(bytes)).toEqual(['0 B', '1023 B', '1 KiB', '1.5 MiB', '123 GiB']);
    expect(integer(-1234)).toBe('−1\u202f234');
  });
  it('rounds shares down, so that 100% means done', () => {
    expect([0.999, 1, 0.004, 0].map(percent)).toEqual(['99%', '100%', '0.4%', '0%']);
  });
  it('estimates the rest from the mean speed', () => {
    expect(eta(100, 400, 10)).toBe(30);
    expect([eta(0, 400, 10), eta(400, 400, 10), eta(5, null, 10)]).toEqual([null, null, null]);
    expect(secondsBetween('2026-01-01T00:00:00Z', null, Date.parse('2026-01-01T00:01:00Z'))).toBe(60);
  });
});
