import { useEffect, useMemo } from 'preact/hooks';
import { api, type Column, type TaskSamples } from '../../api.ts';
import { Chart } from '../../chart/Chart.tsx';
import { styleOf } from '../../chart/colors.ts';
import type { PlotSeries } from '../../chart/plot.ts';
import { bytes, number } from '../../format.ts';
import { useLoad } from '../../parts/hooks.ts';
import { Empty, ErrorBox, Loading } from '../../parts/parts.tsx';
import { useStore } from '../../store.ts';
import { theme, type Theme } from '../../theme.ts';

const POLL_MS = 5000;

type Field = 'cpu' | 'memory' | 'received' | 'sent' | 'read' | 'written';

const CHARTS: readonly { field: Field; title: string; peak?: 'cpu_peak' | 'memory_peak'; format: (value: number) => string }[] = [
  { field: 'cpu', title: 'CPU, cores', peak: 'cpu_peak', format: (v) => number(v, 3) },
  { field: 'memory', title: 'Memory', peak: 'memory_peak', format: bytes },
  { field: 'received', title: 'Network received', format: (v) => `${bytes(v)}/s` },
  { field: 'sent', title: 'Network sent', format: (v) => `${bytes(v)}/s` },
  { field: 'read', title: 'Disk read', format: (v) => `${bytes(v)}/s` },
  { field: 'written', title: 'Disk written', format: (v) => `${bytes(v)}/s` },
];

const hasValues = (column: Column): boolean => column.some((value) => value !== null);

export function highest(column: Column): number | null {
  let max: number | null = null;
  for (const value of column) if (value !== null && (max === null || value > max)) max = value;
  return max;
}

export function meanOf(column: Column): number | null {
  const values = column.filter((value): value is number => value !== null);
  return values.length === 0 ? null : values.reduce((a, b) => a + b, 0) / values.length;
}

function plots(tasks: readonly TaskSamples[], field: Field, peak: 'cpu_peak' | 'memory_peak' | undefined, current: Theme): PlotSeries[] {
  return tasks.flatMap((task, i) => {
    const style = styleOf(i, current);
    const base = { label: task.task, color: style.color, dash: style.dash, xs: task.times };
    const line: PlotSeries = { ...base, id: task.task, ys: task[field] };
    if (!peak || !hasValues(task[peak])) return [line];
    return [{ ...base, id: `${task.task} peak`, ys: task[peak], alpha: 0.35, width: 1, quiet: true }, line];
  });
}

function PeakTable({ tasks }: { tasks: readonly TaskSamples[] }) {
  return (
    <div class="table-wrap" tabIndex={0} role="region" aria-label="Peaks per task">
      <table>
        <thead><tr><th>Task</th><th class="num">CPU mean</th><th class="num">CPU peak</th><th class="num">Memory now</th><th class="num">Memory peak</th></tr></thead>
        <tbody>
          {tasks.map((task) => (
            <tr key={task.task}>
              <td class="mono">{task.task}</td>
              <td class="num">{number(meanOf(task.cpu), 3)}</td>
              <td class="num">{number(highest(task.cpu_peak) ?? highest(task.cpu), 3)}</td>
              <td class="num">{bytes(task.memory[task.memory.length - 1])}</td>
              <td class="num">{bytes(highest(task.memory_peak) ?? highest(task.memory))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

// Loads the samples of a job, again and again while it runs.
export function useSamples(id: string, running: boolean) {
  const loaded = useLoad((signal) => api.samples(id, signal), [id]);
  const { reload } = loaded;
  useEffect(() => {
    if (!running) return;
    const timer = setInterval(() => !document.hidden && reload(), POLL_MS);
    return () => clearInterval(timer);
  }, [running, reload]);
  return loaded;
}

export function ResourcesTab({ id, running }: { id: string; running: boolean }) {
  const { data, error, reload } = useSamples(id, running);
  const current = useStore(theme);
  const charts = useMemo(() => CHARTS.map((chart) => ({ ...chart, series: plots(data?.tasks ?? [], chart.field, chart.peak, current) }))
    .filter(({ series }) => series.some((s) => hasValues(s.ys as Column))), [data, current]);
  if (error && !data) return <ErrorBox message={error} retry={reload} />;
  if (!data) return <Loading what="samples" />;
  if (charts.length === 0) return <Empty title="No samples"><p class="muted">CPU and memory are sampled while tasks run, where the platform reports them.</p></Empty>;
  return (
    <>
      <PeakTable tasks={data.tasks} />
      <div class="charts below">
        {charts.map(({ field, title, series, format, peak }) => (
          <Chart key={field} title={title} series={series} xKind="time" fromZero binary={field !== 'cpu'} formatY={format} legend {...(peak ? { note: 'faint: peaks' } : {})} />
        ))}
      </div>
    </>
  );
}
