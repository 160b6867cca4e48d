import { useMemo, useState } from 'preact/hooks';
import { api, FINISHED, messageOf, type JobSummary, type Notes } from '../api.ts';
import { styleOf, slotsOf } from '../chart/colors.ts';
import { count, dateTime, integer } from '../format.ts';
import { moveFocus, useKeys } from '../keys.ts';
import { useDebounced, useLoad, useTitle } from '../parts/hooks.ts';
import { Dialog, download, Empty, ErrorBox, Loading, State, Tags } from '../parts/parts.tsx';
import { compareUrl, go, jobUrl } from '../router.ts';
import { RunTable } from '../runs/Table.tsx';
import { compileFilter, differing, sortRows, toCsv, type Column, type Order, type RunRow } from '../runs/table.ts';
import { useStore } from '../store.ts';
import { throttled, useStream } from '../stream.ts';
import { theme } from '../theme.ts';
import { NotesDialog } from './job/Actions.tsx';

const PAGE = 200;
const MAX_COMPARED = 200;

interface Run extends RunRow {
  job: JobSummary;
}

const BASE: Column[] = [
  { id: 'state', title: 'State', kind: 'run' }, { id: 'name', title: 'Name', kind: 'run' }, { id: 'id', title: 'Id', kind: 'run' },
  { id: 'created', title: 'Created', kind: 'run' }, { id: 'tags', title: 'Tags', kind: 'run' }, { id: 'note', title: 'Note', kind: 'run' },
];

function runOf(job: JobSummary): Run {
  const values: Record<string, string | number | null> = {
    state: job.state, name: job.name, id: job.id, created: dateTime(job.created), tags: job.notes.tags.join(' '), note: job.notes.note,
  };
  for (const [name, value] of Object.entries(job.parameters ?? {})) values[`p ${name}`] = value;
  for (const [name, value] of Object.entries(job.metrics ?? {})) values[`m ${name}`] = value;
  return { id: job.id, values, job };
}

function columnsOf(jobs: readonly JobSummary[]): { parameters: Column[]; metrics: Column[] } {
  const parameters = [...new Set(jobs.flatMap((job) => Object.keys(job.parameters ?? {})))].filter((name) => name !== 'name' && name !== 'model_dir');
  const metrics = [...new Set(jobs.flatMap((job) => Object.keys(job.metrics ?? {})))].sort();
  return {
    parameters: parameters.map((name) => ({ id: `p ${name}`, title: name, kind: 'parameter' })),
    metrics: metrics.map((name) => ({ id: `m ${name}`, title: name, kind: 'metric' })),
  };
}

async function loadRuns(pages: number, signal: AbortSignal): Promise<{ total: number; jobs: JobSummary[] }> {
  let jobs: JobSummary[] = [];
  let total = 0;
  for (let page = 0; page < pages; page++) {
    const answer = await api.jobs({ details: true, offset: page * PAGE, limit: PAGE }, signal);
    jobs = [...jobs, ...answer.jobs];
    total = answer.total;
    if (jobs.length >= total) break;
  }
  return { total, jobs };
}

function DeleteDialog({ runs, onClose, onDone }: { runs: readonly Run[]; onClose: () => void; onDone: () => void }) {
  const [error, setError] = useState<string | null>(null);
  const finished = runs.filter((run) => FINISHED.has(run.job.state));
  const remove = async () => {
    try {
      for (const run of finished) await api.remove(run.id);
      onDone();
    } catch (problem) {
      setError(messageOf(problem));
    }
  };
  return (
    <Dialog title={`Delete ${count(finished.length, 'run')}?`} onClose={onClose}>
      <p>Their records, logs and samples on this machine are deleted. Their model dirs stay.{finished.length < runs.length && ' Runs that are not finished are kept.'}</p>
      <p class="mono muted">{finished.slice(0, 10).map((run) => run.id).join(', ')}{finished.length > 10 && ' …'}</p>
      {error && <ErrorBox message={error} />}
      <div class="dialog-actions">
        <button type="button" onClick={onClose}>Cancel</button>
        <button type="button" class="danger" disabled={finished.length === 0} onClick={() => void remove()}>Delete</button>
      </div>
    </Dialog>
  );
}

export function RunsPage(_: { params: URLSearchParams }) {
  useTitle('Runs');
  const [pages, setPages] = useState(1);
  const { data, error, loading, reload, set } = useLoad((signal) => loadRuns(pages, signal), []);
  const [text, setText] = useState('');
  const settled = useDebounced(text, 150);
  const [order, setOrder] = useState<Order | null>(null);
  const [allParameters, setAllParameters] = useState(false);
  const [withHidden, setWithHidden] = useState(false);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [dialog, setDialog] = useState<'delete' | Run | null>(null);
  const current = useStore(theme);
  const refresh = useMemo(() => throttled(async () => reload(), 5000), [reload]);
  useStream(null, { onJobs: refresh });

  const jobs = useMemo(() => (data?.jobs ?? []).filter((job) => withHidden || !job.notes.hidden), [data, withHidden]);
  const { rows, columns, all } = useMemo(() => {
    const runs = jobs.map(runOf);
    const { parameters, metrics } = columnsOf(jobs);
    return { rows: runs, all: [...BASE, ...parameters, ...metrics], columns: [...(allParameters ? parameters : differing(parameters, runs)), ...metrics] };
  }, [jobs, allParameters]);
  const filter = useMemo(() => compileFilter(settled, all), [settled, all]);
  const shown = useMemo(() => sortRows(rows.filter(filter.matches), order), [rows, filter, order]);
  const chosen = rows.filter((row) => selected.has(row.id));
  const slots = useMemo(() => slotsOf(chosen.map((row) => row.id)), [selected, rows]);

  const toggle = (id: string) => {
    const next = new Set(selected);
    if (!next.delete(id)) next.add(id);
    setSelected(next);
  };
  const compare = () => chosen.length > 0 && go(compareUrl(chosen.slice(0, MAX_COMPARED).map((row) => row.id)));
  const replaceNotes = (id: string, notes: Notes) => data && set({ ...data, jobs: data.jobs.map((job) => (job.id === id ? { ...job, notes } : job)) });
  const [problem, setProblem] = useState<string | null>(null);
  const hide = async () => {
    try {
      const changed = new Map<string, Notes>();
      for (const { job } of chosen) changed.set(job.id, await api.notes(job.id, { ...job.notes, hidden: !job.notes.hidden }));
      if (data) set({ ...data, jobs: data.jobs.map((job) => ({ ...job, notes: changed.get(job.id) ?? job.notes })) });
      setSelected(new Set());
    } catch (failure) {
      setProblem(messageOf(failure));
    }
  };
  const exportCsv = () => {
    const list = [...BASE, ...columns];
    download('runs.csv', new Blob([toCsv(list.map((c) => c.title), shown.map((row) => list.map((c) => row.values[c.id])))], { type: 'text/csv' }));
  };
  const move = (step: number) => moveFocus('a[data-run]', step);
  useKeys({
    j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1), c: compare,
    x: () => {
      const id = (document.activeElement as HTMLElement | null)?.dataset?.run;
      if (id) toggle(id);
    },
  });

  if (!data) return <div class="page"><h1 class="sr">Runs</h1>{error ? <ErrorBox message={error} retry={reload} /> : <Loading what="runs" />}</div>;
  if (data.total === 0) return <div class="page"><Empty page title="No runs yet"><p>Every job is a run:</p><pre class="command">muster run job.yaml</pre></Empty></div>;
  const everything = shown.length > 0 && shown.every((row) => selected.has(row.id));
  return (
    <div class="page page-fill">
      <h1 class="sr">Runs</h1>
      <div class="toolbar">
        <input
          type="search" data-search class="grow" aria-label="Filter runs" placeholder='Filter: words, or comparisons such as loss<0.1 learning_rate=0.03 state=failed' value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <label class="check"><input type="checkbox" checked={allParameters} onChange={(event) => setAllParameters(event.currentTarget.checked)} /> all parameters</label>
        <label class="check"><input type="checkbox" checked={withHidden} onChange={(event) => setWithHidden(event.currentTarget.checked)} /> hidden</label>
        <button type="button" onClick={exportCsv}>Export CSV</button>
      </div>
      {filter.unknown.length > 0 && <p class="tone-warn" role="status">No column is called {filter.unknown.join(', ')}.</p>}
      {(error || problem) && <ErrorBox message={error ?? problem ?? ''} />}
      <div class={chosen.length === 0 ? 'selection selection-none' : 'selection'} role="status">
        {chosen.length === 0 ? <span class="muted">{integer(shown.length)} of {count(data.total, 'run')}. Select some to compare them.</span> : <span>{count(chosen.length, 'run')} selected</span>}
        {chosen.length > 0 && <button type="button" class="primary" onClick={compare}>Compare</button>}
        {chosen.length > 0 && <button type="button" onClick={() => void hide()}>{chosen.every((run) => run.job.notes.hidden) ? 'Show' : 'Hide'}</button>}
        {chosen.length === 1 && <button type="button" onClick={() => setDialog(chosen[0]!)}>Notes…</button>}
        {chosen.length > 0 && <button type="button" class="danger" onClick={() => setDialog('delete')}>Delete…</button>}
        {chosen.length > 0 && <button type="button" onClick={() => setSelected(new Set())}>Clear</button>}
      </div>
      <RunTable
        label="Runs" rows={shown} columns={columns} order={order} onOrder={setOrder}
        leadHead={(
          <>
            <th><input type="checkbox" aria-label="Select all shown runs" checked={everything} onChange={() => setSelected(everything ? new Set() : new Set(shown.map((row) => row.id)))} /></th>
            <th>State</th><th>Run</th><th>Created</th><th>Tags</th>
          </>
        )}
        lead={(row: Run) => (
          <>
            <td><input type="checkbox" aria-label={`Select ${row.job.name} ${row.id}`} checked={selected.has(row.id)} onChange={() => toggle(row.id)} /></td>
            <td><State state={row.job.state} /></td>
            <td class="run-name"><span class={slots.has(row.id) ? 'swatch' : 'swatch swatch-none'} style={{ background: slots.has(row.id) ? styleOf(slots.get(row.id)!, current).color : '' }} /><a href={jobUrl(row.id)} data-run={row.id} title={row.job.notes.note || row.id}>{row.job.name}</a> <span class="muted job-id">{row.id.slice(-5)}</span></td>
            <td class="num left">{dateTime(row.job.created)}</td>
            <td><Tags tags={row.job.notes.tags} /></td>
          </>
        )}
      />
      {shown.length === 0 && <Empty title="No run matches" />}
      {data.jobs.length < data.total && (
        <p class="more"><button type="button" disabled={loading} onClick={() => { setPages(pages + 1); reload(); }}>Load {integer(Math.min(PAGE, data.total - data.jobs.length))} more of {integer(data.total)}</button></p>
      )}
      {dialog === 'delete' && <DeleteDialog runs={chosen} onClose={() => setDialog(null)} onDone={() => { setDialog(null); setSelected(new Set()); reload(); }} />}
      {dialog !== null && dialog !== 'delete' && <NotesDialog id={dialog.id} notes={dialog.job.notes} onClose={() => setDialog(null)} onSaved={(notes) => replaceNotes(dialog.id, notes)} />}
    </div>
  );
}
