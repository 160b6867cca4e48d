// Settings that charts of curves share.
import type { Series } from '../api.ts';
import type { XKind } from '../chart/plot.ts';

export interface CurveOptions {
  x: XKind;
  // The weight of the past, from 0 (none).
  smoothing: number;
  log: boolean;
}

// Returns the positions of a series; `start` (seconds) is the zero of relative time, the first point's time if it is NaN.
export function xOf(series: Series, kind: XKind, start: number): number[] {
  if (kind === 'step') return series.steps;
  const first = Number.isFinite(start) ? start : (series.times.find((t): t is number => t !== null) ?? 0);
  let last = NaN;
  return series.times.map((t) => {
    // A point without a time is drawn at that of its neighbour.
    if (t !== null) last = t;
    const time = Number.isNaN(last) ? first : last;
    return kind === 'time' ? time : time - first;
  });
}

export function CurveControls({ options, onChange }: { options: CurveOptions; onChange: (options: CurveOptions) => void }) {
  return (
    <div class="controls">
      <label>X axis
        <select value={options.x} onChange={(event) => onChange({ ...options, x: event.currentTarget.value as XKind })}>
          <option value="step">step</option>
          <option value="relative">time since start</option>
          <option value="time">time of day</option>
        </select>
      </label>
      <label>Smoothing
        <input
          type="range" min="0" max="0.99" step="0.01" value={options.smoothing} aria-valuetext={String(options.smoothing)}
          onInput={(event) => onChange({ ...options, smoothing: Number(event.currentTarget.value) })}
        />
        <span class="num smoothing-value">{options.smoothing.toFixed(2)}</span>
      </label>
      <label class="check">
        <input type="checkbox" checked={options.log} onChange={(event) => onChange({ ...options, log: event.currentTarget.checked })} /> log scale
      </label>
    </div>
  );
}
