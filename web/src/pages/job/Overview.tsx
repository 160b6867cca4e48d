import { useMemo, useState } from 'preact/hooks';
import type { JobDetails, Series } from '../../api.ts';
import { Chart } from '../../chart/Chart.tsx';
import { styleOf } from '../../chart/colors.ts';
import type { PlotSeries, XKind } from '../../chart/plot.ts';
import { smooth } from '../../chart/smooth.ts';
import { compact, integer } from '../../format.ts';
import { Empty, Loading } from '../../parts/parts.tsx';
import { recall, remember, theme, type Theme } from '../../theme.ts';
import { useStore } from '../../store.ts';
import { CurveControls, xOf, type CurveOptions } from '../curves.tsx';
import { chartsOf, isRate } from './series.ts';
import { WaitBars } from './Tasks.tsx';

const FIRST_CHARTS = 24;

function plotOf(series: Series, slot: number, options: CurveOptions, theme: Theme, start: number): PlotSeries[] {
  const style = styleOf(slot, theme);
  const xs = xOf(series, options.x, start);
  const base = { id: series.name, label: series.name, color: style.color, dash: style.dash, xs };
  if (options.smoothing === 0) return [{ ...base, ys: series.values }];
  return [
    { ...base, id: `${series.name} raw`, ys: series.values, alpha: 0.3, width: 1, quiet: true },
    { ...base, ys: smooth(series.values, options.smoothing) },
  ];
}

function storedX(): XKind {
  const value = recall('muster.x');
  return value === 'time' || value === 'relative' ? value : 'step';
}

export function OverviewTab({ details, series, loaded }: { details: JobDetails; series: readonly Series[]; loaded: boolean }) {
  const [options, setOptions] = useState<CurveOptions>({ x: storedX(), smoothing: 0, log: false });
  const [all, setAll] = useState(false);
  const current = useStore(theme);
  const start = details.job.started ? Date.parse(details.job.started) / 1000 : NaN;
  const charts = useMemo(() => chartsOf(series).map(({ title, series: list }) => ({
    title,
    points: Math.max(...list.map((s) => s.count)),
    plots: list.flatMap((s, i) => plotOf(s, i, options, current, start)),
  })), [series, options, current, start]);
  const change = (value: CurveOptions) => {
    remember('muster.x', value.x);
    setOptions(value);
  };
  if (!loaded) return <Loading what="curves" />;
  return (
    <>
      {charts.length === 0 ? <NoCurves /> : (
        <>
          <CurveControls options={options} onChange={change} />
          <div class="charts">
            {charts.slice(0, all ? charts.length : FIRST_CHARTS).map(({ title, plots, points }) => (
              <Chart
                key={title} title={title} series={plots} xKind={options.x} yLog={options.log} fromZero={isRate(title)} note={`${integer(points)} points`}
                legend={plots.filter((s) => !s.quiet).length > 1} {...(isRate(title) ? { formatY: compact } : {})}
              />
            ))}
          </div>
          {!all && charts.length > FIRST_CHARTS && (
            <p><button type="button" onClick={() => setAll(true)}>Show {charts.length - FIRST_CHARTS} more charts</button></p>
          )}
        </>
      )}
      {details.tasks.some((task) => task.waits) && <section aria-label="Time per task"><h2>Where the time goes</h2><WaitBars tasks={details.tasks} /></section>}
    </>
  );
}

function NoCurves() {
  return (
    <Empty title="No metrics yet">
      <p>Curves appear with the first values. A program of your own writes lines such as this to <code>$MUSTER_METRICS_FILE</code>:</p>
      <pre class="command">{'{"step": 10, "name": "loss", "value": 0.52}'}</pre>
      <p class="muted">TensorBoard event files in the model dir are read, too.</p>
    </Empty>
  );
}
