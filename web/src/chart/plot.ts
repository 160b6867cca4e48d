// Draws curves on a canvas. Every curve has its own positions, so runs with different steps need no joined table.
import { clock, compact, duration, number } from '../format.ts';
import { linearTicks, logTicks, padded, rangeOf, timeTicks, type Range } from './scale.ts';

export type XKind = 'step' | 'time' | 'relative';

export interface PlotSeries {
  id: string;
  label: string;
  color: string;
  dash?: readonly number[];
  width?: number;
  alpha?: number;
  xs: ArrayLike<number>;
  ys: ArrayLike<number | null>;
  // A band from low to high around the curve.
  low?: ArrayLike<number>;
  high?: ArrayLike<number>;
  // Left out of the readout: for example the curve before smoothing.
  quiet?: boolean;
}

export interface PlotOptions {
  xKind: XKind;
  yLog: boolean;
  formatY?: (value: number) => string;
  // The y axis begins at 0.
  fromZero?: boolean;
  // The values are bytes.
  binary?: boolean;
}

export interface PlotColors {
  text: string;
  grid: string;
  axis: string;
  background: string;
}

export interface Layout {
  width: number;
  height: number;
  left: number;
  top: number;
  right: number;
  bottom: number;
  x: Range;
  y: Range;
}

const FONT = '11px system-ui, sans-serif';

export function formatX(value: number, kind: XKind, range: Range): string {
  if (kind === 'step') return compact(value);
  if (kind === 'relative') return range.max - range.min < 5 ? `${number(value, 3)}s` : duration(value);
  const date = new Date(value * 1000);
  if (range.max - range.min < 86400) return clock(date);
  return `${date.getMonth() + 1}/${date.getDate()} ${String(date.getHours()).padStart(2, '0')}:${String(date.getMinutes()).padStart(2, '0')}`;
}

// Returns the first index whose position is not below x.
export function lowerBound(xs: ArrayLike<number>, x: number): number {
  let low = 0;
  let high = xs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle]! < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function nearest(xs: ArrayLike<number>, x: number): number {
  const i = lowerBound(xs, x);
  if (i === 0) return 0;
  if (i >= xs.length) return xs.length - 1;
  return x - xs[i - 1]! <= xs[i]! - x ? i - 1 : i;
}

function yColumns(series: readonly PlotSeries[], x: Range | null): ArrayLike<number | null>[] {
  const columns: ArrayLike<number | null>[] = [];
  for (const s of series) {
    const from = x === null ? 0 : Math.max(0, lowerBound(s.xs, x.min) - 1);
    const to = x === null ? s.xs.length : lowerBound(s.xs, x.max) + 1;
    const slice = (column: ArrayLike<number | null>) =>
      x === null ? column : (Array.prototype.slice.call(column, from, to) as (number | null)[]);
    columns.push(slice(s.ys));
    if (s.low) columns.push(slice(s.low));
    if (s.high) columns.push(slice(s.high));
  }
  return columns;
}

export function layoutOf(
  context: CanvasRenderingContext2D, width: number, height: number, series: readonly PlotSeries[], options: PlotOptions, zoom: Range | null,
): Layout | null {
  const xs = zoom ?? rangeOf(series.map((s) => s.xs));
  if (xs === null) return null;
  const x = xs.min === xs.max ? { min: xs.min - 0.5, max: xs.max + 0.5 } : xs;
  const found = rangeOf(yColumns(series, zoom), options.yLog);
  if (found === null) return null;
  let y = padded(found, options.yLog);
  if (options.fromZero && !options.yLog) y = { min: 0, max: Math.max(y.max, 1e-9) };
  context.font = FONT;
  const format = options.formatY ?? ((value: number) => number(value, 3));
  const ticks = options.yLog ? logTicks(y, 5) : linearTicks(y, Math.max(2, Math.floor(height / 34)), options.binary);
  const widest = Math.max(24, ...ticks.map((t) => context.measureText(format(t)).width));
  return { width, height, left: Math.ceil(widest) + 12, top: 8, right: 12, bottom: 22, x, y };
}

export class Projection {
  private readonly x0: number;
  private readonly xScale: number;
  private readonly y1: number;
  private readonly yScale: number;
  private readonly yMin: number;
  constructor(readonly layout: Layout, private readonly yLog: boolean) {
    const { x, y, left, right, top, bottom, width, height } = layout;
    this.x0 = left;
    this.xScale = (width - left - right) / (x.max - x.min);
    this.yMin = yLog ? Math.log(y.min) : y.min;
    this.yScale = (height - top - bottom) / ((yLog ? Math.log(y.max) : y.max) - this.yMin || 1);
    this.y1 = height - bottom;
  }
  px(x: number): number {
    return this.x0 + (x - this.layout.x.min) * this.xScale;
  }
  py(y: number): number {
    return this.y1 - ((this.yLog ? Math.log(y) : y) - this.yMin) * this.yScale;
  }
  xAt(px: number): number {
    return this.layout.x.min + (px - this.x0) / this.xScale;
  }
  defined(y: number | null | undefined): y is number {
    return y !== null && y !== undefined && Number.isFinite(y) && !(this.yLog && y <= 0);
  }
}

export function drawAxes(context: CanvasRenderingContext2D, layout: Layout, options: PlotOptions, colors: PlotColors): void {
  const p = new Projection(layout, options.yLog);
  const { left, right, top, bottom, width, height, x, y } = layout;
  context.font = FONT;
  context.lineWidth = 1;
  context.fillStyle = colors.text;
  context.strokeStyle = colors.grid;
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  const format = options.formatY ?? ((value: number) => number(value, 3));
  const yTicks = options.yLog ? logTicks(y, 5) : linearTicks(y, Math.max(2, Math.floor(height / 34)), options.binary);
  for (const tick of yTicks) {
    const py = Math.round(p.py(tick)) + 0.5;
    if (py < top - 1 || py > height - bottom + 1) continue;
    line(context, left, py, width - right, py);
    context.fillText(format(tick), left - 6, py);
  }
  context.textAlign = 'center';
  context.textBaseline = 'top';
  const wanted = Math.max(2, Math.floor((width - left - right) / (options.xKind === 'step' ? 70 : 90)));
  const zone = -new Date(x.min * 1000).getTimezoneOffset() * 60;
  const xTicks = options.xKind === 'step' ? linearTicks(x, wanted) : timeTicks(x, wanted, options.xKind === 'time' ? zone : 0);
  for (const tick of xTicks) {
    const text = formatX(tick, options.xKind, x);
    const half = context.measureText(text).width / 2;
    const px = Math.min(Math.max(p.px(tick), left + 1), width - right);
    context.fillText(text, Math.min(Math.max(px, half + 1), width - half - 1), height - bottom + 6);
    line(context, Math.round(px) + 0.5, height - bottom, Math.round(px) + 0.5, height - bottom + 3);
  }
  context.strokeStyle = colors.axis;
  line(context, left, height - bottom + 0.5, width - right, height - bottom + 0.5);
}

function line(context: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}

function visible(s: PlotSeries, x: Range): [number, number] {
  return [Math.max(0, lowerBound(s.xs, x.min) - 1), Math.min(s.xs.length, lowerBound(s.xs, x.max) + 1)];
}

// Adds the curve to the path. Where several points share a pixel column, only its first, lowest, highest and last point are
// drawn: no peak is lost, and the cost depends on the width, not on the points.
function trace(context: CanvasRenderingContext2D, s: PlotSeries, p: Projection): void {
  const [from, to] = visible(s, p.layout.x);
  let pen = false;
  let column = NaN;
  let low = 0;
  let high = 0;
  let lastY = 0;
  const flush = () => {
    if (Number.isNaN(column)) return;
    if (low !== high) {
      context.lineTo(column, low);
      context.lineTo(column, high);
      context.lineTo(column, lastY);
    }
    column = NaN;
  };
  for (let i = from; i < to; i++) {
    const y = s.ys[i];
    if (!p.defined(y)) {
      flush();
      pen = false;
      continue;
    }
    const px = Math.round(p.px(s.xs[i]!) * 2) / 2;
    const py = p.py(y);
    if (px === column) {
      low = Math.min(low, py);
      high = Math.max(high, py);
      lastY = py;
      continue;
    }
    flush();
    if (pen) context.lineTo(px, py);
    else context.moveTo(px, py);
    pen = true;
    column = px;
    low = high = lastY = py;
  }
  flush();
}

function fillBand(context: CanvasRenderingContext2D, s: PlotSeries, p: Projection): void {
  if (!s.low || !s.high) return;
  const [from, to] = visible(s, p.layout.x);
  const floor = p.layout.y.min;
  context.beginPath();
  for (let i = from; i < to; i++) context.lineTo(p.px(s.xs[i]!), p.py(p.defined(s.high[i]) ? s.high[i]! : floor));
  for (let i = to - 1; i >= from; i--) context.lineTo(p.px(s.xs[i]!), p.py(p.defined(s.low[i]) ? s.low[i]! : floor));
  context.closePath();
  context.globalAlpha = 0.18;
  context.fillStyle = s.color;
  context.fill();
  context.globalAlpha = 1;
}

// A curve of one point, or of points between gaps, has no line: mark it.
function markSingle(context: CanvasRenderingContext2D, s: PlotSeries, p: Projection): void {
  if (s.xs.length > 3) return;
  context.fillStyle = s.color;
  for (let i = 0; i < s.xs.length; i++) {
    const y = s.ys[i];
    if (!p.defined(y)) continue;
    context.beginPath();
    context.arc(p.px(s.xs[i]!), p.py(y), 2.5, 0, 2 * Math.PI);
    context.fill();
  }
}

export function drawSeries(
  context: CanvasRenderingContext2D, layout: Layout, series: readonly PlotSeries[], options: PlotOptions, highlight: string | null,
): void {
  const p = new Projection(layout, options.yLog);
  const { left, right, top, bottom, width, height } = layout;
  context.save();
  context.beginPath();
  context.rect(left, top - 4, width - left - right + 4, height - top - bottom + 8);
  context.clip();
  context.lineJoin = 'round';
  for (const s of series) fillBand(context, s, p);
  const ordered = highlight === null ? series : [...series].sort((a, b) => Number(a.id === highlight) - Number(b.id === highlight));
  for (const s of ordered) {
    const faded = highlight !== null && s.id !== highlight;
    context.globalAlpha = (s.alpha ?? 1) * (faded ? 0.2 : 1);
    context.strokeStyle = s.color;
    context.lineWidth = (s.width ?? 1.5) + (s.id === highlight ? 1 : 0);
    context.setLineDash((s.dash ?? []) as number[]);
    context.beginPath();
    trace(context, s, p);
    context.stroke();
    markSingle(context, s, p);
  }
  context.restore();
}

export interface Reading {
  series: PlotSeries;
  x: number;
  y: number;
}

// Returns the points nearest to x, one of each curve.
export function readingsAt(series: readonly PlotSeries[], x: number): Reading[] {
  const readings: Reading[] = [];
  for (const s of series) {
    if (s.quiet || s.xs.length === 0) continue;
    const i = nearest(s.xs, x);
    const y = s.ys[i];
    if (y === null || y === undefined || !Number.isFinite(y)) continue;
    readings.push({ series: s, x: s.xs[i]!, y });
  }
  return readings;
}
