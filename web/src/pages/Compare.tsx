import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { api, messageOf, type Comparison, type JobSummary, type Series } from '../api.ts';
import { Chart, chartColors, Legend } from '../chart/Chart.tsx';
import { slotsOf, styleOf } from '../chart/colors.ts';
import { toPng } from '../chart/png.ts';
import type { PlotSeries, XKind } from '../chart/plot.ts';
import { compact, count } from '../format.ts';
import { useLoad, useTitle } from '../parts/hooks.ts';
import { download, Empty, ErrorBox, Loading, State, Tags } from '../parts/parts.tsx';
import { jobUrl, setParams } from '../router.ts';
import { groupedCurves, runCurves } from '../runs/curves.ts';
import { groupChoices, groupRuns } from '../runs/groups.ts';
import { RunTable } from '../runs/Table.tsx';
import { compileFilter, sortRows, toCsv, type Column, type Order, type RunRow } from '../runs/table.ts';
import { useStore } from '../store.ts';
import { throttled, useStream } from '../stream.ts';
import { theme } from '../theme.ts';
import { CurveControls, type CurveOptions } from './curves.tsx';
import { isRate } from './job/series.ts';

// Points of all curves of one request: enough for every pixel, and parsed in a moment.
const POINT_BUDGET = 120000;
const FIRST_METRICS = 4;
const REFRESH_MS = 3000;

function optionsOf(params: URLSearchParams): CurveOptions {
  const x = params.get('x');
  const smoothing = Number(params.get('smoothing'));
  return {
    x: x === 'time' || x === 'relative' ? x : 'step', smoothing: smoothing > 0 && smoothing < 1 ? smoothing : 0, log: params.get('log') === '1',
  };
}

function defaultMetrics(names: readonly string[]): string[] {
  const rank = (name: string): number => {
    const last = name.split('/').pop()!;
    if (last === 'loss') return 0;
    return last === 'accuracy' ? 1 : isRate(name) ? 3 : 2;
  };
  return [...names].sort((a, b) => rank(a) - rank(b) || a.length - b.length).slice(0, FIRST_METRICS);
}

// Loads the curves of the metrics; `round` loads them again.
function useSeries(ids: readonly string[], metrics: readonly string[], round: number) {
  const points = Math.max(600, Math.min(4000, Math.floor(POINT_BUDGET / Math.max(1, ids.length * metrics.length))));
  const load = useLoad(async (signal) => {
    if (metrics.length === 0) return { series: [] as Series[], problems: [] as string[] };
    return api.series(ids, metrics, points, signal);
  }, [ids, metrics]);
  const { reload } = load;
  const first = useRef(round);
  useEffect(() => {
    if (round !== first.current) reload();
  }, [round]);
  return load;
}

interface CompareRow extends RunRow {
  job: JobSummary | null;
}

function tableOf(comparison: Comparison, jobs: ReadonlyMap<string, JobSummary>, all: boolean): { columns: Column[]; rows: CompareRow[] } {
  const parameters = comparison.parameters.filter((p) => (all || (p.differs && p.name !== 'model_dir')) && p.name !== 'name');
  const columns: Column[] = [
    ...parameters.map((p): Column => ({ id: `p ${p.name}`, title: p.name, kind: 'parameter' })),
    ...comparison.metrics.flatMap((m): Column[] => (['last', 'min', 'max'] as const).map((kind) => ({ id: `m ${m.name} ${kind}`, title: `${m.name} ${kind}`, kind: 'metric' }))),
  ];
  const rows = comparison.jobs.map((id, i) => {
    const job = jobs.get(id) ?? null;
    const values: Record<string, string | number | null> = { id, name: job?.name ?? nameOf(comparison, i), state: job?.state ?? null, tags: job?.notes.tags.join(' ') ?? null };
    for (const p of parameters) values[`p ${p.name}`] = p.values[i] ?? null;
    for (const m of comparison.metrics) for (const kind of ['last', 'min', 'max'] as const) values[`m ${m.name} ${kind}`] = m.values[i]?.[kind] ?? null;
    return { id, values, job };
  });
  return { columns, rows };
}

const nameOf = (comparison: Comparison, i: number): string => comparison.parameters.find((p) => p.name === 'name')?.values[i] ?? comparison.jobs[i]!;

function curvesCsv(series: readonly Series[]): string {
  function* rows() {
    for (const s of series) for (let i = 0; i < s.steps.length; i++) yield [s.job, s.name, s.steps[i], s.times[i], s.values[i]];
  }
  return toCsv(['job', 'metric', 'step', 'time', 'value'], rows());
}

function MetricChips({ names, chosen, onChange }: { names: readonly string[]; chosen: readonly string[]; onChange: (names: string[]) => void }) {
  return (
    <div class="chips" role="group" aria-label="Metrics">
      {names.map((name) => (
        <button type="button" class="chip" key={name} aria-pressed={chosen.includes(name)} onClick={() => onChange(chosen.includes(name) ? chosen.filter((n) => n !== name) : [...chosen, name])}>{name}</button>
      ))}
    </div>
  );
}

function useHidden(): [ReadonlySet<string>, (id: string) => void] {
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  return [hidden, (id) => {
    const next = new Set(hidden);
    if (!next.delete(id)) next.add(id);
    setHidden(next);
  }];
}

export function ComparePage({ params }: { params: URLSearchParams }) {
  const ids = [...new Set(params.getAll('job'))];
  useTitle(`Compare ${count(ids.length, 'run')}`);
  if (ids.length === 0) return <div class="page"><Empty page title="Nothing to compare"><p>Select runs in the <a href="/runs">table of runs</a> or in the <a href="/">list of jobs</a>.</p></Empty></div>;
  return <Compare ids={ids} params={params} />;
}

function Compare({ ids, params }: { ids: string[]; params: URLSearchParams }) {
  const options = optionsOf(params);
  const choice = params.get('group') ?? 'none';
  const comparison = useLoad((signal) => api.compare(ids, signal), [ids]);
  const jobs = useLoad((signal) => api.jobs({ limit: 1000 }, signal), [ids]);
  const [round, setRound] = useState(0);
  const refresh = useMemo(() => throttled(async () => setRound((n) => n + 1), REFRESH_MS), []);
  useEffect(() => () => refresh.cancel(), [refresh]);
  useStream(null, { onJobs: (changed) => changed.some((job) => ids.includes(job.id)) && refresh() });
  useEffect(() => {
    if (round > 0) comparison.reload();
  }, [round]);

  const names = comparison.data?.metrics.map((m) => m.name) ?? [];
  const chosen = params.has('metric') ? (params.get('metric') ?? '').split('|').filter((name) => names.includes(name)) : defaultMetrics(names);
  const series = useSeries(ids, chosen, round);
  const [hidden, toggleHidden] = useHidden();
  const [highlight, setHighlight] = useState<string | null>(null);
  const [all, setAll] = useState(false);
  const [order, setOrder] = useState<Order | null>(null);
  const [text, setText] = useState('');
  const current = useStore(theme);
  const root = useRef<HTMLDivElement>(null);
  const [problem, setProblem] = useState<string | null>(null);

  const known = useMemo(() => new Map((jobs.data?.jobs ?? []).map((job) => [job.id, job])), [jobs.data]);
  const table = useMemo(() => (comparison.data ? tableOf(comparison.data, known, all) : null), [comparison.data, known, all]);
  const groups = useMemo(() => (comparison.data ? groupRuns(comparison.data, choice) : null), [comparison.data, choice]);
  const slots = useMemo(() => slotsOf(groups ? groups.map((g) => `group ${g.key}`) : ids), [groups, JSON.stringify(ids)]);
  const label = (id: string) => {
    const i = comparison.data?.jobs.indexOf(id) ?? -1;
    const name = known.get(id)?.name ?? (i >= 0 ? nameOf(comparison.data!, i) : id);
    return id.startsWith(name) ? id : `${name} ${id}`;
  };
  const charts = useMemo(() => chosen.map((name) => {
    const list = (series.data?.series ?? []).filter((s) => s.name === name && !hidden.has(s.job));
    const input = { series: list, options, theme: current, slots, label };
    return { name, series: groups ? groupedCurves(groups, input) : runCurves(input) };
  }), [series.data, hidden, options.x, options.smoothing, options.log, groups, slots, current, known, chosen.join('|')]);
  const highlighted = groups && highlight ? (groups.find((g) => g.key === highlight || g.jobs.includes(highlight))?.key ?? null) : highlight;

  const setOptions = (next: CurveOptions) => setParams({ x: next.x === 'step' ? null : next.x, smoothing: next.smoothing ? String(next.smoothing) : null, log: next.log ? '1' : null });
  const exportPng = async () => {
    try {
      const pictures = charts.map((c) => ({ title: c.name, series: c.series, options: { xKind: options.x, yLog: options.log, fromZero: isRate(c.name) } }));
      download('curves.png', await toPng(pictures, chartColors(root.current!)));
    } catch (failure) {
      setProblem(messageOf(failure));
    }
  };
  if (comparison.error && !comparison.data) return <div class="page"><h1 class="sr">Comparison</h1><ErrorBox message={comparison.error} retry={comparison.reload} /></div>;
  if (!comparison.data || !table) return <div class="page"><h1 class="sr">Comparison</h1><Loading what="runs" /></div>;
  const filter = compileFilter(text, [{ id: 'name', title: 'name', kind: 'run' }, { id: 'id', title: 'id', kind: 'run' }, { id: 'state', title: 'state', kind: 'run' }, { id: 'tags', title: 'tags', kind: 'run' }, ...table.columns]);
  const shown = sortRows(table.rows.filter(filter.matches), order);
  const exportTable = () => download('comparison.csv', new Blob([toCsv(['id', 'name', ...table.columns.map((c) => c.title)], shown.map((row) => [row.id, row.values.name, ...table.columns.map((c) => row.values[c.id])]))], { type: 'text/csv' }));
  const problems = [...comparison.data.problems, ...(series.data?.problems ?? [])];
  return (
    <div class="page" ref={root}>
      <div class="toolbar"><h1>{count(ids.length, 'run')}</h1><a href="/runs">choose others</a><span class="spacer" /><MetricChips names={names} chosen={chosen} onChange={(list) => setParams({ metric: list.join('|') || '-' })} /></div>
      <div class="toolbar">
        <CurveControls options={options} onChange={setOptions} />
        <div class="controls">
          <label>Group
            <select value={choice} onChange={(event) => setParams({ group: event.currentTarget.value === 'none' ? null : event.currentTarget.value })}>
              {groupChoices(comparison.data).map((g) => <option value={g.id} key={g.id}>{g.title}</option>)}
            </select>
          </label>
          <button type="button" onClick={() => void exportPng()} disabled={charts.length === 0}>PNG</button>
          <button type="button" onClick={() => download('curves.csv', new Blob([curvesCsv(series.data?.series ?? [])], { type: 'text/csv' }))}>CSV of curves</button>
        </div>
      </div>
      {problem && <ErrorBox message={problem} />}
      {series.error && <ErrorBox message={series.error} retry={series.reload} />}
      {problems.length > 0 && <details class="notice"><summary>{count(problems.length, 'problem')} while reading metrics</summary><span class="pre-line">{problems.join('\n')}</span></details>}
      {!series.data && !series.error && chosen.length > 0 && <Loading what="curves" />}
      {chosen.length === 0 && <Empty title={names.length === 0 ? 'These runs have no metrics' : 'No metric is selected'} />}
      {series.data && <CompareCharts charts={charts} options={options} highlight={highlighted} onHighlight={setHighlight} grouped={groups !== null} />}
      <div class="toolbar below">
        <input type="search" data-search class="grow" aria-label="Filter the table" placeholder="Filter: words, or comparisons such as loss<0.1" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <label class="check"><input type="checkbox" checked={all} onChange={(event) => setAll(event.currentTarget.checked)} /> all parameters</label>
        <button type="button" onClick={exportTable}>CSV of table</button>
      </div>
      <RunTable
        label="Compared runs" rows={shown} columns={table.columns} order={order} onOrder={setOrder} onHover={setHighlight}
        leadHead={<><th><span class="sr">Show curve</span></th><th>Run</th><th>State</th><th>Tags</th></>}
        lead={(row: CompareRow) => (
          <>
            <td><input type="checkbox" aria-label={`Show the curves of ${row.id}`} checked={!hidden.has(row.id)} onChange={() => toggleHidden(row.id)} /></td>
            <td class="run-name"><span class="swatch" style={{ background: styleOf(slotOf(row.id, groups, slots), current).color }} /><a href={jobUrl(row.id)} data-run={row.id}>{row.values.name}</a> <span class="muted job-id">{row.id.slice(-5)}</span></td>
            <td>{row.job ? <State state={row.job.state} /> : '–'}</td>
            <td><Tags tags={row.job?.notes.tags ?? []} /></td>
          </>
        )}
      />
    </div>
  );
}

function slotOf(id: string, groups: ReturnType<typeof groupRuns>, slots: ReadonlyMap<string, number>): number {
  const group = groups?.find((g) => g.jobs.includes(id));
  return slots.get(group ? `group ${group.key}` : id) ?? 0;
}

const MOST_LABELS = 40;

// The curves of all charts, each once.
function sharedLegend(charts: readonly { series: PlotSeries[] }[]): PlotSeries[] {
  const byId = new Map<string, PlotSeries>();
  for (const { series } of charts) for (const s of series) if (!s.quiet) byId.set(s.id, s);
  return [...byId.values()];
}

function CompareCharts({ charts, options, highlight, onHighlight, grouped }: {
  charts: readonly { name: string; series: PlotSeries[] }[]; options: { x: XKind; log: boolean }; highlight: string | null; onHighlight: (id: string | null) => void; grouped: boolean;
}) {
  const labels = sharedLegend(charts);
  return (
    <>
      {labels.length > 0 && labels.length <= MOST_LABELS && <div class="shared-legend"><Legend series={labels} onHighlight={onHighlight} /></div>}
      <div class="charts charts-wide">
        {charts.map(({ name, series }) => (
          <Chart
            key={name} title={name} series={series} xKind={options.x} yLog={options.log} height={260} fromZero={isRate(name)} highlight={highlight}
            note={grouped ? 'mean ± standard deviation' : ''} {...(isRate(name) ? { formatY: compact } : {})}
          />
        ))}
      </div>
    </>
  );
}
