import { useCallback, useEffect, useMemo, useState } from 'preact/hooks';
import { api, messageOf, type JobDetails, type Series } from '../api.ts';
import { useKeys } from '../keys.ts';
import { useTitle } from '../parts/hooks.ts';
import { Empty, ErrorBox, Loading, Tabs, type TabItem } from '../parts/parts.tsx';
import { setParams } from '../router.ts';
import { throttled, useStream } from '../stream.ts';
import { Actions } from './job/Actions.tsx';
import { CheckpointsTab } from './job/Checkpoints.tsx';
import { EventsTab } from './job/Events.tsx';
import { FailureReport } from './job/Failure.tsx';
import { FileTab } from './job/File.tsx';
import { GraphTab } from './job/Graph.tsx';
import { Head } from './job/Head.tsx';
import { LogsTab } from './job/Logs.tsx';
import { OverviewTab } from './job/Overview.tsx';
import { ResourcesTab } from './job/Resources.tsx';
import { TasksTab } from './job/Tasks.tsx';

const SERIES_POINTS = 1500;
const SERIES_PAUSE_MS = 1000;
const LOG_PAUSE_MS = 300;

// A counter that each hint of the stream raises, at most every `pauseMs`.
function useTicks(pauseMs: number): [number, () => void] {
  const [ticks, setTicks] = useState(0);
  const raise = useMemo(() => throttled(async () => setTicks((n) => n + 1), pauseMs), [pauseMs]);
  useEffect(() => () => raise.cancel(), [raise]);
  return [ticks, raise];
}

function useJob(id: string) {
  const [details, setDetails] = useState<JobDetails | null>(null);
  const [error, setError] = useState<{ message: string; status: number } | null>(null);
  const [series, setSeries] = useState<readonly Series[]>([]);
  const [seriesLoaded, setSeriesLoaded] = useState(false);
  const [removed, setRemoved] = useState(false);
  const [logTicks, onLog] = useTicks(LOG_PAUSE_MS);
  const load = useCallback(async () => {
    try {
      setDetails(await api.job(id));
      setError(null);
    } catch (problem) {
      setError({ message: messageOf(problem), status: (problem as { status?: number }).status ?? 0 });
    }
  }, [id]);
  const loadSeries = useMemo(() => throttled(async () => {
    try {
      setSeries((await api.series([id], [], SERIES_POINTS)).series);
    } catch {
      // The next hint tries again; the job's own request reports that the server is gone.
    }
    setSeriesLoaded(true);
  }, SERIES_PAUSE_MS), [id]);
  useEffect(() => {
    void load();
    loadSeries();
    return () => loadSeries.cancel();
  }, [load, loadSeries]);
  useStream(id, {
    onOpen: () => {
      loadSeries();
      onLog();
    },
    onJob: (value) => {
      setDetails(value);
      setError(null);
    },
    onJobs: (_, gone) => gone.includes(id) && setRemoved(true),
    onLog,
    onMetrics: loadSeries,
  });
  return { details, error, series, seriesLoaded, removed, logTicks, load, setDetails };
}

const TAB_IDS = ['overview', 'tasks', 'logs', 'resources', 'events', 'file', 'checkpoints', 'graph'] as const;

function tabsOf(details: JobDetails): TabItem[] {
  const titles: Record<string, string> = {
    overview: 'Overview', tasks: 'Tasks', logs: 'Logs', resources: 'Resources', events: 'Events', file: 'File', checkpoints: 'Checkpoints', graph: 'Graph',
  };
  return TAB_IDS.map((id) => (id === 'tasks' ? { id, label: titles[id]!, count: details.tasks.length } : { id, label: titles[id]! }));
}

export function JobPage({ id, params }: { id: string; params: URLSearchParams }) {
  const { details, error, series, seriesLoaded, removed, logTicks, load, setDetails } = useJob(id);
  useTitle(details ? `${details.job.name} ${details.job.state}` : id);
  const tab = TAB_IDS.find((name) => name === params.get('tab')) ?? 'overview';
  const select = (name: string) => setParams({ tab: name === 'overview' ? null : name });
  useKeys(Object.fromEntries(TAB_IDS.map((name, i) => [String(i + 1), () => select(name)])));

  if (removed) return <div class="page"><Empty page title="This job was removed"><p><a href="/">All jobs</a></p></Empty></div>;
  if (!details) {
    if (error?.status === 404) return <div class="page"><Empty page title="No such job"><p>{error.message}</p><p><a href="/">All jobs</a></p></Empty></div>;
    return <div class="page"><h1 class="sr">{id}</h1>{error ? <ErrorBox message={error.message} retry={() => void load()} /> : <Loading what="the job" />}</div>;
  }
  const running = details.actions.includes('stop');
  return (
    <div class="page">
      <Head details={details} series={series}>
        <Actions details={details} onChange={() => void load()} onNotes={(notes) => setDetails({ ...details, job: { ...details.job, notes } })} />
      </Head>
      {error && <ErrorBox message={error.message} retry={() => void load()} />}
      {details.job.failure && <FailureReport failure={details.job.failure} id={id} />}
      <Tabs tabs={tabsOf(details)} current={tab} onSelect={select} label="Parts of the job" />
      <div id="tabpanel" role="tabpanel" aria-labelledby={`tab-${tab}`} class={`panel panel-${tab}`}>
        {tab === 'overview' && <OverviewTab details={details} series={series} loaded={seriesLoaded} />}
        {tab === 'tasks' && <TasksTab details={details} />}
        {tab === 'logs' && <LogsTab details={details} ticks={logTicks} params={params} />}
        {tab === 'resources' && <ResourcesTab id={id} running={running} />}
        {tab === 'events' && <EventsTab details={details} />}
        {tab === 'file' && <FileTab details={details} params={params} />}
        {tab === 'checkpoints' && <CheckpointsTab details={details} />}
        {tab === 'graph' && <GraphTab id={id} />}
      </div>
    </div>
  );
}
