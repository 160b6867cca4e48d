// Scales and ticks of axes.

export interface Range {
  min: number;
  max: number;
}

// Returns the smallest range that holds all finite values, or null if there are none.
export function rangeOf(columns: Iterable<ArrayLike<number | null>>, positive = false): Range | null {
  let min = Infinity;
  let max = -Infinity;
  for (const column of columns) {
    for (let i = 0; i < column.length; i++) {
      const value = column[i];
      if (value === null || value === undefined || !Number.isFinite(value) || (positive && value <= 0)) continue;
      if (value < min) min = value;
      if (value > max) max = value;
    }
  }
  return min <= max ? { min, max } : null;
}

// Widens a range so that curves do not touch the frame; a range of one value gets a height.
export function padded(range: Range, log: boolean): Range {
  if (log) {
    const factor = range.min === range.max ? 2 : (range.max / range.min) ** 0.04;
    return { min: range.min / factor, max: range.max * factor };
  }
  const size = range.max - range.min || Math.abs(range.max) || 1;
  return { min: range.min - size * 0.04, max: range.max + size * 0.04 };
}

// Returns round positions within the range, about `wanted` of them; for sizes in bytes, powers of two are round.
export function linearTicks(range: Range, wanted: number, binary = false): number[] {
  const size = range.max - range.min;
  if (!(size > 0) || wanted < 1) return [];
  const raw = size / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = binary ? 2 ** Math.ceil(Math.log2(raw)) : ([1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999) ?? raw);
  const ticks: number[] = [];
  for (let i = Math.ceil(range.min / step - 1e-9); i * step <= range.max + step * 1e-9; i++) {
    ticks.push(Number((i * step).toPrecision(12)));
  }
  return ticks;
}

export function logTicks(range: Range, wanted: number): number[] {
  const first = Math.floor(Math.log10(range.min));
  const last = Math.ceil(Math.log10(range.max));
  const decades = last - first;
  const multiples = decades <= wanted / 3 ? [1, 2, 5] : [1];
  const skip = Math.max(1, Math.ceil(decades / Math.max(1, wanted)));
  const ticks: number[] = [];
  for (let power = first; power <= last; power++) {
    if ((power - first) % skip !== 0) continue;
    for (const multiple of multiples) {
      const value = Number((multiple * 10 ** power).toPrecision(12));
      if (value >= range.min && value <= range.max) ticks.push(value);
    }
  }
  return ticks.length >= 2 ? ticks : linearTicks(range, wanted).filter((value) => value > 0);
}

const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];

// Returns positions at round seconds, minutes, hours or days; `offset` is that of the zone in seconds.
export function timeTicks(range: Range, wanted: number, offset = 0): number[] {
  const raw = (range.max - range.min) / Math.max(1, wanted);
  if (raw < 1) return linearTicks(range, wanted);
  const step = TIME_STEPS.find((s) => s >= raw) ?? Math.ceil(raw / 604800) * 604800;
  const ticks: number[] = [];
  for (let t = Math.ceil((range.min + offset) / step) * step; t <= range.max + offset; t += step) ticks.push(t - offset);
  return ticks;
}
