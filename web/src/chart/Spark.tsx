import { rangeOf } from './scale.ts';

const WIDTH = 120;
const HEIGHT = 26;
const MAX_POINTS = 120;

// Reduces values to at most `points`, keeping the extremes of every part.
export function thin(values: ArrayLike<number | null>, points: number): (number | null)[] {
  const n = values.length;
  if (n <= points) return Array.from(values);
  const result: (number | null)[] = [];
  const parts = Math.max(1, Math.floor(points / 2));
  for (let part = 0; part < parts; part++) {
    const from = Math.floor((part * n) / parts);
    const to = Math.floor(((part + 1) * n) / parts);
    let low = -1;
    let high = -1;
    for (let i = from; i < to; i++) {
      const value = values[i];
      if (value === null || value === undefined || !Number.isFinite(value)) continue;
      if (low < 0 || value < values[low]!) low = i;
      if (high < 0 || value > values[high]!) high = i;
    }
    if (low < 0) result.push(null);
    else for (const i of low === high ? [low] : [Math.min(low, high), Math.max(low, high)]) result.push(values[i]!);
  }
  return result;
}

// A curve without axes, for a line of text.
export function Spark({ values, label }: { values: ArrayLike<number | null>; label: string }) {
  const points = thin(values, MAX_POINTS);
  const range = rangeOf([points]);
  if (!range || points.length < 2) return null;
  const size = range.max - range.min || 1;
  let path = '';
  let pen = false;
  points.forEach((value, i) => {
    if (value === null || !Number.isFinite(value)) {
      pen = false;
      return;
    }
    const x = (i / (points.length - 1)) * (WIDTH - 2) + 1;
    const y = HEIGHT - 3 - ((value - range.min) / size) * (HEIGHT - 6);
    path += `${pen ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = true;
  });
  return (
    <svg class="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label} preserveAspectRatio="none">
      <path d={path} vector-effect="non-scaling-stroke" />
    </svg>
  );
}
