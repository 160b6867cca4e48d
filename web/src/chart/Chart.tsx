import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { number } from '../format.ts';
import { useStore } from '../store.ts';
import { theme } from '../theme.ts';
import {
  drawAxes, drawSeries, formatX, layoutOf, Projection, readingsAt,
  type Layout, type PlotColors, type PlotOptions, type PlotSeries, type Reading, type XKind,
} from './plot.ts';
import type { Range } from './scale.ts';

const MAX_READINGS = 12;

export interface ChartProps {
  title: string;
  series: readonly PlotSeries[];
  xKind?: XKind;
  yLog?: boolean;
  fromZero?: boolean;
  binary?: boolean;
  height?: number;
  formatY?: (value: number) => string;
  highlight?: string | null;
  onHighlight?: (id: string | null) => void;
  // Shown beside the title.
  note?: string;
  legend?: boolean;
}

export function chartColors(element: Element): PlotColors {
  const style = getComputedStyle(element);
  const value = (name: string) => style.getPropertyValue(name).trim();
  return { text: value('--muted'), grid: value('--grid'), axis: value('--line-strong'), background: value('--surface') };
}

function useSize(element: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const node = element.current;
    if (!node) return;
    setWidth(Math.floor(node.clientWidth));
    const observer = new ResizeObserver(() => setWidth(Math.floor(node.clientWidth)));
    observer.observe(node);
    return () => observer.disconnect();
  }, []);
  return width;
}

function prepare(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext('2d');
  context?.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

function summary(props: ChartProps): string {
  const shown = props.series.filter((s) => !s.quiet);
  if (shown.length === 0) return `${props.title}: no data`;
  const parts = shown.slice(0, 3).map((s) => {
    const last = s.ys[s.ys.length - 1];
    return `${s.label} ${last === null || last === undefined ? 'not finite' : (props.formatY ?? number)(last)}`;
  });
  const more = shown.length > 3 ? ` and ${shown.length - 3} more` : '';
  return `${props.title}, last values: ${parts.join(', ')}${more}`;
}

function Readout({ readings, kind, range, formatY, px, width }: {
  readings: Reading[]; kind: XKind; range: Range; formatY: (value: number) => string; px: number; width: number;
}) {
  const left = px > width / 2;
  return (
    <div class={`readout ${left ? 'readout-left' : ''}`} style={{ left: left ? 'auto' : `${px + 12}px`, right: left ? `${width - px + 12}px` : 'auto' }}>
      <div class="readout-x">{kind === 'step' ? 'step ' : ''}{formatX(readings[0]!.x, kind, range)}</div>
      {readings.slice(0, MAX_READINGS).map(({ series, y }) => (
        <div class="readout-row" key={series.id}>
          <span class="swatch" style={{ background: series.color }} />
          <span class="readout-label">{series.label}</span>
          <span class="num">{formatY(y)}</span>
        </div>
      ))}
      {readings.length > MAX_READINGS && <div class="muted">and {readings.length - MAX_READINGS} more</div>}
    </div>
  );
}

// Puts the curves nearest to the pointer first if there are more than the readout shows.
function sortedReadings(readings: Reading[], p: Projection, py: number | null): Reading[] {
  if (py === null || readings.length <= MAX_READINGS) return readings;
  return [...readings].sort((a, b) => Math.abs(p.py(a.y) - py) - Math.abs(p.py(b.y) - py));
}

export function Chart(props: ChartProps) {
  const { series, xKind = 'step', yLog = false, fromZero = false, binary = false, height = 200, highlight = null } = props;
  const formatY = props.formatY ?? ((value: number) => number(value));
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const layout = useRef<Layout | null>(null);
  const width = useSize(box);
  const current = useStore(theme);
  const [zoom, setZoom] = useState<Range | null>(null);
  const [pointer, setPointer] = useState<{ x: number; y: number | null } | null>(null);
  const [drag, setDrag] = useState<number | null>(null);
  const options: PlotOptions = useMemo(() => {
    const value: PlotOptions = { xKind, yLog, fromZero, binary };
    if (props.formatY) value.formatY = props.formatY;
    return value;
  }, [xKind, yLog, fromZero, binary, props.formatY]);
  useEffect(() => setZoom(null), [xKind]);

  const [hasData, setHasData] = useState(true);
  useLayoutEffect(() => {
    if (!canvas.current || width === 0) return;
    const context = prepare(canvas.current, width, height);
    if (!context) return;
    context.clearRect(0, 0, width, height);
    layout.current = layoutOf(context, width, height, series, options, zoom);
    setHasData(layout.current !== null);
    if (!layout.current) return;
    drawAxes(context, layout.current, options, chartColors(canvas.current));
    drawSeries(context, layout.current, series, options, highlight);
  }, [series, options, width, height, zoom, current, highlight]);

  const at = (event: PointerEvent): { x: number; y: number } => {
    const bounds = (event.currentTarget as Element).getBoundingClientRect();
    return { x: event.clientX - bounds.left, y: event.clientY - bounds.top };
  };
  const move = useCallback((event: PointerEvent) => setPointer(at(event)), []);
  const release = (event: PointerEvent) => {
    if (drag === null || !layout.current) return;
    const p = new Projection(layout.current, yLog);
    const end = at(event).x;
    if (Math.abs(end - drag) > 8) setZoom({ min: p.xAt(Math.min(drag, end)), max: p.xAt(Math.max(drag, end)) });
    setDrag(null);
  };
  const onKey = (event: KeyboardEvent) => {
    const l = layout.current;
    if (!l || event.ctrlKey || event.metaKey || event.altKey) return;
    const x = pointer?.x ?? l.width - l.right;
    const step = (l.width - l.left - l.right) / 50;
    if (event.key === 'ArrowLeft') setPointer({ x: Math.max(l.left, x - step), y: null });
    else if (event.key === 'ArrowRight') setPointer({ x: Math.min(l.width - l.right, x + step), y: null });
    else if (event.key === 'Escape' && (pointer || zoom)) {
      setPointer(null);
      setZoom(null);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const l = layout.current;
  const inside = l && pointer && pointer.x >= l.left - 2 && pointer.x <= l.width - l.right + 2;
  const p = l ? new Projection(l, yLog) : null;
  const readings = inside && p ? sortedReadings(readingsAt(series, p.xAt(pointer.x)), p, pointer.y) : [];
  const mark = readings[0] && p ? p.px(readings[0].x) : null;

  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{props.title}</span>
        {props.note && <span class="muted chart-note">{props.note}</span>}
        {zoom && <button type="button" class="link" onClick={() => setZoom(null)}>reset zoom</button>}
      </figcaption>
      <div class="chart-box" ref={box} style={{ height: `${height}px` }}>
        <canvas
          ref={canvas} role="img" tabIndex={0} aria-label={summary(props)} style={{ width: `${width}px`, height: `${height}px` }}
          onPointerMove={move} onPointerLeave={() => setPointer(null)} onPointerUp={release} onKeyDown={onKey}
          onPointerDown={(event) => event.button === 0 && event.pointerType === 'mouse' && setDrag(at(event).x)}
          onDblClick={() => setZoom(null)} onBlur={() => setPointer(null)}
        />
        {!hasData && <p class="chart-empty muted">No values yet</p>}
        {mark !== null && l && <div class="chart-cursor" style={{ left: `${mark}px`, top: `${l.top}px`, height: `${l.height - l.top - l.bottom}px` }} />}
        {drag !== null && pointer && l && (
          <div class="chart-drag" style={{ left: `${Math.min(drag, pointer.x)}px`, width: `${Math.abs(pointer.x - drag)}px`, top: `${l.top}px`, height: `${l.height - l.top - l.bottom}px` }} />
        )}
        {readings.length > 0 && l && mark !== null && (
          <Readout readings={readings} kind={xKind} range={l.x} formatY={formatY} px={mark} width={width} />
        )}
      </div>
      {props.legend && <Legend series={series} {...(props.onHighlight ? { onHighlight: props.onHighlight } : {})} />}
    </figure>
  );
}

// A piece of the line of a curve.
export function LineSwatch({ series }: { series: PlotSeries }) {
  return <svg class="line-swatch" viewBox="0 0 20 8" aria-hidden="true"><path d="M0 4H20" stroke={series.color} stroke-dasharray={(series.dash ?? []).join(' ')} /></svg>;
}

export function Legend({ series, onHighlight }: { series: readonly PlotSeries[]; onHighlight?: (id: string | null) => void }) {
  return (
    <ul class="legend">
      {series.filter((s) => !s.quiet).slice(0, 40).map((s) => (
        <li key={s.id} onMouseEnter={() => onHighlight?.(s.id)} onMouseLeave={() => onHighlight?.(null)}>
          <LineSwatch series={s} />{s.label}
        </li>
      ))}
    </ul>
  );
}
