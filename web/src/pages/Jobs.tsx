import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { api, isAbort, JOB_STATES, messageOf, type JobState, type JobSummary, type Session } from '../api.ts';
import { compact, count, dateTime, duration, integer, number, secondsBetween } from '../format.ts';
import { useKeys } from '../keys.ts';
import { useDebounced, useNow, useTitle } from '../parts/hooks.ts';
import { Empty, ErrorBox, Loading, ProgressBar, State, Tags, toneOf } from '../parts/parts.tsx';
import { compareUrl, go, jobUrl, setParams } from '../router.ts';
import { throttled, useStream } from '../stream.ts';
import { emptyList, jobAt, pagesOf, PAGE, withChanges, withPage, type JobList } from './jobList.ts';

const OVERSCAN = 12;
const REFRESH_MS = 1500;

interface Filter {
  state: string[];
  search: string;
  platform: string;
}

function filterOf(params: URLSearchParams): Filter {
  return {
    state: (params.get('state') ?? '').split(',').filter(Boolean),
    search: params.get('search') ?? '',
    platform: params.get('platform') ?? '',
  };
}

const isFiltered = (filter: Filter): boolean => filter.state.length > 0 || filter.search !== '' || filter.platform !== '';

function useRowHeight(): number {
  const wide = window.matchMedia('(min-width: 721px)');
  const [height, setHeight] = useState(wide.matches ? 33 : 66);
  useEffect(() => {
    const update = () => setHeight(wide.matches ? 33 : 66);
    wide.addEventListener('change', update);
    return () => wide.removeEventListener('change', update);
  }, []);
  return height;
}

// Holds the pages of the list around the visible rows and keeps them up to date.
function useJobs(filter: Filter) {
  const [list, setList] = useState<JobList>(emptyList);
  const [error, setError] = useState<string | null>(null);
  const [loaded, setLoaded] = useState(false);
  const wanted = useRef<number[]>([0]);
  const key = JSON.stringify(filter);
  const loading = useRef(new Map<number, AbortController>());

  const load = useCallback(async (page: number) => {
    if (loading.current.has(page)) return;
    const abort = new AbortController();
    loading.current.set(page, abort);
    try {
      const answer = await api.jobs({ ...filter, offset: page * PAGE, limit: PAGE }, abort.signal);
      if (abort.signal.aborted) return;
      setList((before) => withPage(before, page, answer));
      setLoaded(true);
      setError(null);
    } catch (problem) {
      if (!isAbort(problem)) setError(messageOf(problem));
    } finally {
      if (loading.current.get(page) === abort) loading.current.delete(page);
    }
  }, [key]);

  const refresh = useMemo(() => throttled(async () => {
    await Promise.all(wanted.current.map(load));
  }, REFRESH_MS), [load]);

  useEffect(() => {
    setList((before) => ({ ...before, pages: new Map() }));
    setLoaded(false);
    wanted.current = [0];
    void load(0);
    return () => {
      for (const abort of loading.current.values()) abort.abort();
      loading.current.clear();
      refresh.cancel();
    };
  }, [load]);

  useStream(null, {
    onOpen: refresh,
    onJobs: (changed, removed) => {
      setList((before) => {
        const { list: after, stale } = withChanges(before, changed, removed);
        if (stale) refresh();
        return after;
      });
    },
  });

  const show = (pages: number[]) => {
    wanted.current = pages;
    for (const page of pages) if (!list.pages.has(page)) void load(page);
  };
  return { list, error, loaded, show, retry: refresh };
}

function Chips({ filter, states, total }: { filter: Filter; states: JobList['states']; total: number }) {
  const toggle = (state: JobState) => {
    const next = filter.state.includes(state) ? filter.state.filter((s) => s !== state) : [...filter.state, state];
    setParams({ state: next.join(',') });
  };
  return (
    <div class="chips" role="group" aria-label="Filter by state">
      <button type="button" class="chip" aria-pressed={filter.state.length === 0} onClick={() => setParams({ state: null })}>
        All <span class="num">{integer(total)}</span>
      </button>
      {JOB_STATES.filter((state) => states[state] || filter.state.includes(state)).map((state) => (
        <button type="button" class="chip" key={state} aria-pressed={filter.state.includes(state)} onClick={() => toggle(state)}>
          <State state={state} /> <span class="num">{integer(states[state] ?? 0)}</span>
        </button>
      ))}
    </div>
  );
}

function Filters({ filter, platforms }: { filter: Filter; platforms: Session['platforms'] }) {
  const [text, setText] = useState(filter.search);
  const settled = useDebounced(text, 200);
  useEffect(() => setText(filter.search), [filter.search]);
  useEffect(() => {
    if (settled === text && settled !== filter.search) setParams({ search: settled });
  }, [settled]);
  return (
    <div class="filters">
      <input
        type="search" data-search placeholder="Search name, id, tag" aria-label="Search jobs by name, id or tag" value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      {platforms.length > 1 && (
        <select aria-label="Platform" value={filter.platform} onChange={(event) => setParams({ platform: event.currentTarget.value })}>
          <option value="">all platforms</option>
          {platforms.map((platform) => <option value={platform.name} key={platform.name}>{platform.title}</option>)}
        </select>
      )}
    </div>
  );
}

// The part of an id that the name does not show already.
const shortId = (job: JobSummary): string => (job.id.startsWith(`${job.name}-`) ? job.id.slice(job.name.length + 1) : job.id);

function Row({ job, row, top, selected, onSelect, now }: {
  job: JobSummary | null; row: number; top: number; selected: boolean; onSelect: (id: string) => void; now: number;
}) {
  if (!job) {
    return <div class="row row-empty" role="row" aria-rowindex={row + 2} style={{ transform: `translateY(${top}px)` }}><span role="cell" class="muted">…</span></div>;
  }
  const ran = secondsBetween(job.started, job.finished, now);
  const problem = job.failure?.summary ?? job.reason;
  return (
    <div class="row" role="row" aria-rowindex={row + 2} aria-selected={selected} style={{ transform: `translateY(${top}px)` }}>
      <span role="cell" class="c-check">
        <input type="checkbox" aria-label={`Select ${job.name} ${job.id}`} checked={selected} onChange={() => onSelect(job.id)} />
      </span>
      <span role="cell" class="c-state"><State state={job.state} /></span>
      <span role="cell" class="c-name">
        <a href={jobUrl(job.id)} data-row={row} data-job={job.id} title={job.id}>{job.name}</a>
        <span class="muted job-id">{shortId(job)}</span>
        {problem && job.state !== 'Succeeded' && <span class={`reason tone-${toneOf(job.state)}`} title={problem}>{problem}</span>}
      </span>
      <span role="cell" class="c-progress"><ProgressBar progress={job.progress} tone={toneOf(job.state)} label={`Progress of ${job.name}`} /></span>
      <span role="cell" class="c-loss num">{number(job.progress?.loss)}</span>
      <span role="cell" class={`c-rate num ${job.progress?.examples_per_second ? '' : 'absent'}`}>{compact(job.progress?.examples_per_second)}</span>
      <span role="cell" class="c-time num">{duration(ran)}</span>
      <span role="cell" class="c-age num" title={dateTime(job.created)}>{duration(secondsBetween(job.created, null, now))}</span>
      <span role="cell" class="c-platform">{job.platform}</span>
      <span role="cell" class="c-tasks num">{integer(job.tasks)}</span>
      <span role="cell" class="c-tags"><Tags tags={job.notes.tags} /></span>
    </div>
  );
}

const COLUMNS: readonly [string, string][] = [
  ['c-check', 'Select'], ['c-state', 'State'], ['c-name', 'Job'], ['c-progress', 'Progress'], ['c-loss num', 'Loss'], ['c-rate num', 'Ex/s'],
  ['c-time num', 'Duration'], ['c-age num', 'Age'], ['c-platform', 'Platform'], ['c-tasks num', 'Tasks'], ['c-tags', 'Tags'],
];

function HeadRow() {
  return (
    <div class="row row-head" role="row" aria-rowindex={1}>
      {COLUMNS.map(([name, title]) => (
        <span role="columnheader" class={name} key={title}>{name === 'c-check' ? <span class="sr">{title}</span> : title}</span>
      ))}
    </div>
  );
}

function NoJobs({ filtered }: { filtered: boolean }) {
  if (filtered) {
    return <Empty title="No job matches"><button type="button" onClick={() => go('/')}>Show all jobs</button></Empty>;
  }
  return (
    <Empty title="No jobs yet">
      <p>Start one in a terminal; it appears here at once:</p>
      <pre class="command">muster run job.yaml</pre>
      <p class="muted">No job file? <code>muster init</code> writes one, and <code>muster help</code> lists the commands.</p>
    </Empty>
  );
}

export function JobsPage({ params, platforms }: { params: URLSearchParams; platforms: Session['platforms'] }) {
  useTitle('Jobs');
  const filter = filterOf(params);
  const { list, error, loaded, show, retry } = useJobs(filter);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const scroller = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  const rowHeight = useRowHeight();
  const now = useNow();

  const first = Math.max(0, Math.floor(view.top / rowHeight) - OVERSCAN);
  const last = Math.min(list.total, Math.ceil((view.top + view.height) / rowHeight) + OVERSCAN);
  const measure = useCallback(() => {
    const node = scroller.current;
    if (node) setView({ top: node.scrollTop, height: node.clientHeight });
  }, []);
  useLayoutEffect(() => {
    measure();
    window.addEventListener('resize', measure);
    return () => window.removeEventListener('resize', measure);
  }, [loaded]);
  useEffect(() => {
    if (list.total > 0) show(pagesOf(first, last - 1));
  }, [first, last, list.total]);

  const toggle = useCallback((id: string) => setSelected((before) => {
    const next = new Set(before);
    if (!next.delete(id)) next.add(id);
    return next;
  }), []);
  const focusRow = (step: number) => {
    const active = document.activeElement instanceof HTMLElement ? document.activeElement.dataset.row : undefined;
    const at = active === undefined ? (step > 0 ? Math.ceil(view.top / rowHeight) : 0) : Number(active) + step;
    const row = Math.min(list.total - 1, Math.max(0, at));
    const node = scroller.current;
    if (!node || row < 0) return;
    if (row * rowHeight < node.scrollTop) node.scrollTop = row * rowHeight;
    if ((row + 2) * rowHeight > node.scrollTop + node.clientHeight) node.scrollTop = (row + 2) * rowHeight - node.clientHeight;
    measure();
    requestAnimationFrame(() => node.querySelector<HTMLElement>(`[data-row="${row}"]`)?.focus({ preventScroll: true }));
  };
  const selectFocused = () => {
    const id = (document.activeElement as HTMLElement | null)?.dataset?.job;
    if (id) toggle(id);
  };
  const compare = () => selected.size > 0 && go(compareUrl([...selected]));
  useKeys({ j: () => focusRow(1), k: () => focusRow(-1), ArrowDown: () => focusRow(1), ArrowUp: () => focusRow(-1), x: selectFocused, c: compare });

  const rows = [];
  for (let row = first; row < last; row++) {
    const job = jobAt(list, row);
    rows.push(<Row key={job?.id ?? `row-${row}`} job={job} row={row} top={row * rowHeight} selected={job !== null && selected.has(job.id)} onSelect={toggle} now={now} />);
  }
  const all = Object.values(list.states).reduce((a, b) => a + b, 0);
  return (
    <div class="page page-fill">
      <h1 class="sr">Jobs</h1>
      <div class="toolbar">
        <Chips filter={filter} states={list.states} total={all} />
        <span class="spacer" />
        <Filters filter={filter} platforms={platforms} />
      </div>
      {selected.size > 0 && (
        <div class="selection" role="status">
          {count(selected.size, 'job')} selected
          <button type="button" class="primary" onClick={compare}>Compare</button>
          <button type="button" onClick={() => setSelected(new Set())}>Clear</button>
        </div>
      )}
      {error && <ErrorBox message={error} retry={retry} />}
      {!loaded && !error && <Loading what="jobs" />}
      {loaded && list.total === 0 && <NoJobs filtered={isFiltered(filter)} />}
      {loaded && list.total > 0 && (
        <div class="list" role="table" aria-label="Jobs" aria-rowcount={list.total + 1}>
          <div class="list-scroll" role="rowgroup" ref={scroller} onScroll={measure} tabIndex={-1}>
            <HeadRow />
            <div class="list-space" role="presentation" style={{ height: `${list.total * rowHeight}px` }}>{rows}</div>
          </div>
        </div>
      )}
    </div>
  );
}
