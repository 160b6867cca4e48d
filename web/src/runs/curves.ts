// Curves of several runs: one each, or one a group with its deviation.
import type { Series } from '../api.ts';
import { styleOf } from '../chart/colors.ts';
import type { PlotSeries } from '../chart/plot.ts';
import { groupCurves, smooth, type Curve } from '../chart/smooth.ts';
import type { CurveOptions } from '../pages/curves.tsx';
import { xOf } from '../pages/curves.tsx';
import type { Theme } from '../theme.ts';
import type { RunGroup } from './groups.ts';

const RAW_UP_TO = 8;

export interface CurveInput {
  series: readonly Series[];
  options: CurveOptions;
  theme: Theme;
  slots: ReadonlyMap<string, number>;
  label: (job: string) => string;
}

// Returns the curves of single runs. The raw values stay visible behind smoothed ones unless there are many.
export function runCurves({ series, options, theme, slots, label }: CurveInput): PlotSeries[] {
  const raw = options.smoothing > 0 && series.length <= RAW_UP_TO;
  return series.flatMap((s) => {
    const style = styleOf(slots.get(s.job) ?? 0, theme);
    const base = { label: label(s.job), color: style.color, dash: style.dash, xs: xOf(s, options.x, NaN) };
    const width = series.length > 20 ? 1 : 1.5;
    const line: PlotSeries = { ...base, id: s.job, width, ys: options.smoothing > 0 ? smooth(s.values, options.smoothing) : s.values };
    return raw ? [{ ...base, id: `${s.job} raw`, ys: s.values, alpha: 0.25, width: 1, quiet: true }, line] : [line];
  });
}

// Returns the mean of each group with a band of ± one standard deviation.
export function groupedCurves(groups: readonly RunGroup[], { series, options, theme, slots }: CurveInput): PlotSeries[] {
  const byJob = new Map(series.map((s) => [s.job, s]));
  return groups.flatMap((group) => {
    const curves: Curve[] = group.jobs.flatMap((job) => {
      const s = byJob.get(job);
      if (!s) return [];
      return [{ xs: xOf(s, options.x, NaN), ys: options.smoothing > 0 ? smooth(s.values, options.smoothing) : s.values }];
    });
    if (curves.length === 0) return [];
    const { xs, mean, low, high } = groupCurves(curves);
    const style = styleOf(slots.get(`group ${group.key}`) ?? 0, theme);
    return [{ id: group.key, label: `${group.label} (${curves.length})`, color: style.color, dash: style.dash, width: 2, xs, ys: mean, low, high }];
  });
}
