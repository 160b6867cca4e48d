// Chooses and arranges the series of one job.
import type { Series } from '../../api.ts';

// Metrics whose last part of the name says that a higher value is better.
const RATES = /(^|\/)(examples_per_second|steps_per_second|throughput)$/;

export const findSeries = (series: readonly Series[], name: string): Series | null =>
  series.find((s) => s.name === name) ?? series.find((s) => s.name.split('/').pop() === name) ?? null;

export const isRate = (name: string): boolean => RATES.test(name);

// The chart of a metric: its name without the part that says where it was measured, so that `accuracy` and `eval/accuracy`
// share one.
export const chartOf = (name: string): string => name.split('/').pop() ?? name;

const ORDER = ['loss', 'accuracy', 'examples_per_second', 'learning_rate'];

// Groups series into charts: loss and accuracy first, the rest by name. Series of one chart are few: more get their own.
export function chartsOf(series: readonly Series[], most = 6): { title: string; series: Series[] }[] {
  const charts = new Map<string, Series[]>();
  for (const s of series) {
    const title = chartOf(s.name);
    charts.set(title, [...(charts.get(title) ?? []), s]);
  }
  const result: { title: string; series: Series[] }[] = [];
  for (const [title, list] of charts) {
    if (list.length <= most) result.push({ title, series: list.sort((a, b) => a.name.length - b.name.length) });
    else for (const s of list) result.push({ title: s.name, series: [s] });
  }
  const rank = (title: string): number => {
    const i = ORDER.indexOf(title);
    return i < 0 ? ORDER.length : i;
  };
  return result.sort((a, b) => rank(a.title) - rank(b.title) || a.title.localeCompare(b.title));
}
