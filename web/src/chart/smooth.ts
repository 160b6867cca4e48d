// Smoothing and statistics of curves.

// Exponential moving average with the weight of the past in [0, 1), corrected for its start. Values that are not finite stay
// gaps and do not spread.
export function smooth(values: ArrayLike<number | null>, weight: number): (number | null)[] {
  const result = new Array<number | null>(values.length);
  let average = 0;
  let total = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (value === null || value === undefined || !Number.isFinite(value)) {
      result[i] = null;
      continue;
    }
    average = weight * average + (1 - weight) * value;
    total = weight * total + (1 - weight);
    result[i] = average / total;
  }
  return result;
}

export interface Curve {
  xs: number[];
  ys: (number | null)[];
}

export interface Group {
  xs: number[];
  mean: number[];
  low: number[];
  high: number[];
  counts: number[];
}

// Returns the mean and the mean ± standard deviation (of a sample) of curves at common positions: those of the curves if they
// agree, otherwise `points` positions over their range, with values interpolated. A curve counts only within its own range.
export function groupCurves(curves: readonly Curve[], points = 500): Group {
  const result: Group = { xs: [], mean: [], low: [], high: [], counts: [] };
  const clean = curves.map(withoutGaps).filter((curve) => curve.xs.length > 0);
  if (clean.length === 0) return result;
  const at = clean.map(() => 0);
  for (const x of commonPositions(clean, points)) {
    const values: number[] = [];
    clean.forEach((curve, i) => {
      const value = interpolate(curve, x, at, i);
      if (value !== null) values.push(value);
    });
    if (values.length === 0) continue;
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    const square = values.reduce((a, b) => a + (b - mean) ** 2, 0);
    const deviation = values.length < 2 ? 0 : Math.sqrt(square / (values.length - 1));
    result.xs.push(x);
    result.mean.push(mean);
    result.low.push(mean - deviation);
    result.high.push(mean + deviation);
    result.counts.push(values.length);
  }
  return result;
}

function withoutGaps(curve: Curve): { xs: number[]; ys: number[] } {
  const xs: number[] = [];
  const ys: number[] = [];
  for (let i = 0; i < curve.xs.length; i++) {
    const y = curve.ys[i];
    if (y === null || y === undefined || !Number.isFinite(y)) continue;
    xs.push(curve.xs[i]!);
    ys.push(y);
  }
  return { xs, ys };
}

function commonPositions(curves: readonly { xs: number[] }[], points: number): number[] {
  const first = curves[0]!.xs;
  if (curves.every((curve) => curve.xs.length === first.length && curve.xs.every((x, i) => x === first[i]))) return first;
  const all = new Set<number>();
  for (const curve of curves) {
    for (const x of curve.xs) all.add(x);
    if (all.size > points) break;
  }
  if (all.size <= points) return [...all].sort((a, b) => a - b);
  const min = Math.min(...curves.map((curve) => curve.xs[0]!));
  const max = Math.max(...curves.map((curve) => curve.xs[curve.xs.length - 1]!));
  return Array.from({ length: points }, (_, i) => min + ((max - min) * i) / (points - 1));
}

// Positions are visited in ascending order, so at[i] only moves forward.
function interpolate(curve: { xs: number[]; ys: number[] }, x: number, at: number[], i: number): number | null {
  const { xs, ys } = curve;
  const last = xs.length - 1;
  if (x < xs[0]! || x > xs[last]!) return null;
  let k = at[i]!;
  while (k < last && xs[k + 1]! <= x) k++;
  at[i] = k;
  if (k === last || xs[k] === x) return ys[k]!;
  const share = (x - xs[k]!) / (xs[k + 1]! - xs[k]!);
  return ys[k]! + share * (ys[k + 1]! - ys[k]!);
}

export type Trend = 'falling' | 'flat' | 'rising' | 'not finite' | 'unknown';

// Compares the mean of the last fifth of the values with that of the fifth before. A change below 1% is flat.
export function trend(values: ArrayLike<number | null>): Trend {
  const n = values.length;
  if (n === 0) return 'unknown';
  if (values[n - 1] === null) return 'not finite';
  if (n < 6) return 'unknown';
  const part = Math.max(2, Math.floor(n / 5));
  const mean = (from: number, to: number): number => {
    let sum = 0;
    let finite = 0;
    for (let i = from; i < to; i++) {
      const value = values[i];
      if (value === null || value === undefined) continue;
      sum += value;
      finite++;
    }
    return finite === 0 ? NaN : sum / finite;
  };
  const now = mean(n - part, n);
  const before = mean(n - 2 * part, n - part);
  if (!Number.isFinite(now) || !Number.isFinite(before)) return 'not finite';
  const change = (now - before) / (Math.abs(before) || 1);
  if (Math.abs(change) < 0.01) return 'flat';
  return change < 0 ? 'falling' : 'rising';
}

export function median(values: ArrayLike<number | null>): number | null {
  const finite = Array.from(values).filter((v): v is number => v !== null && Number.isFinite(v)).sort((a, b) => a - b);
  if (finite.length === 0) return null;
  const middle = finite.length >> 1;
  return finite.length % 2 === 1 ? finite[middle]! : (finite[middle - 1]! + finite[middle]!) / 2;
}
