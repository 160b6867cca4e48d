// Formatting of values for people.

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86400;

// Formats seconds with at most two units: 42s, 3m 12s, 2h 5m, 4d 3h.
export function duration(seconds: number | null): string {
  if (seconds === null || !Number.isFinite(seconds)) return '–';
  const s = Math.max(0, Math.floor(seconds));
  if (s < MINUTE) return `${s}s`;
  if (s < HOUR) return pair(Math.floor(s / MINUTE), 'm', s % MINUTE, 's');
  if (s < DAY) return pair(Math.floor(s / HOUR), 'h', Math.floor((s % HOUR) / MINUTE), 'm');
  return pair(Math.floor(s / DAY), 'd', Math.floor((s % DAY) / HOUR), 'h');
}

function pair(a: number, unitA: string, b: number, unitB: string): string {
  return b === 0 ? `${a}${unitA}` : `${a}${unitA} ${b}${unitB}`;
}

// Formats a number with `digits` significant digits, without exponent where it stays short.
export function number(value: number | null | undefined, digits = 4): string {
  if (value === null || value === undefined) return '–';
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e9 || size < 1e-4) return value.toExponential(Math.max(0, digits - 2)).replace('-', '−').replace('e+', 'e');
  if (Number.isInteger(value) || size >= 10 ** digits) return integer(Math.round(value));
  return trimZeros(value.toPrecision(digits)).replace('-', '−');
}

function trimZeros(text: string): string {
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

// Groups thousands with a narrow space: 12 345.
export function integer(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  const text = String(Math.abs(Math.trunc(value))).replace(/\B(?=(\d{3})+(?!\d))/g, '\u202f');
  return value < 0 ? `−${text}` : text;
}

// Formats a rate such as examples per second: 950, 12.3k, 4.1M.
export function compact(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  for (const [limit, unit] of [[1e9, 'G'], [1e6, 'M'], [1e4, 'k']] as const) {
    if (size >= limit) return trimZeros((value / (unit === 'k' ? 1e3 : limit)).toPrecision(3)) + unit;
  }
  return size >= 100 || Number.isInteger(value) ? integer(Math.round(value)) : trimZeros(value.toPrecision(3));
}

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let size = value;
  let unit = 0;
  while (Math.abs(size) >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit++;
  }
  const digits = unit === 0 || size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return `${trimZeros(size.toFixed(digits))} ${units[unit]}`;
}

export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined || !Number.isFinite(share)) return '–';
  const value = share * 100;
  return `${value > 0 && value < 1 ? value.toFixed(1) : Math.floor(value + 1e-9)}%`;
}

const two = (value: number): string => String(value).padStart(2, '0');

// 14:03:59, in the zone of the browser.
export function clock(time: Date): string {
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}

// 2026-11-18 14:03:59, in the zone of the browser.
export function dateTime(text: string | null): string {
  if (text === null) return '–';
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) return text;
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} ${clock(time)}`;
}

export function secondsBetween(from: string | null, to: string | null, now: number): number | null {
  if (from === null) return null;
  const end = to === null ? now : Date.parse(to);
  return Math.max(0, (end - Date.parse(from)) / 1000);
}

// Estimates the seconds until `steps`, from the mean speed since `started`.
export function eta(step: number, steps: number | null, elapsed: number | null): number | null {
  if (steps === null || elapsed === null || step <= 0 || step >= steps || elapsed <= 0) return null;
  return ((steps - step) * elapsed) / step;
}

export const count = (n: number, one: string, many = `${one}s`): string => `${integer(n)} ${n === 1 ? one : many}`;
