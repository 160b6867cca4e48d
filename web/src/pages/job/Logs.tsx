import { memo } from '../../parts/memo.ts';
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { api, isAbort, messageOf, type JobDetails, type LogPage, type LogQuery } from '../../api.ts';
import { hash, styleOf } from '../../chart/colors.ts';
import { clock, count, dateTime } from '../../format.ts';
import {
  append, compilePattern, emptyWindow, firstPage, lineCount, marked, newerCursor, olderCursor, prepend, type Block, type LogWindow,
} from '../../logs/window.ts';
import { useDebounced } from '../../parts/hooks.ts';
import { Empty, ErrorBox } from '../../parts/parts.tsx';
import { setParams } from '../../router.ts';
import { useStore } from '../../store.ts';
import { theme, type Theme } from '../../theme.ts';

const PAGE_LINES = 500;
const NEAR_PX = 400;

interface LogFilter {
  task: string[];
  grep: string;
  attempt: number | null;
}

// Reads pages until one has lines: a search may return empty pages on the way.
async function readUntilLines(id: string, query: LogQuery, signal: AbortSignal): Promise<LogPage> {
  let page = await api.logs(id, query, signal);
  const direction = query.direction ?? 'older';
  while (page.lines.length === 0 && !signal.aborted) {
    if (direction === 'newer' || page.older === null) return page;
    const next = await api.logs(id, { ...query, cursor: page.older, direction: 'older' }, signal);
    page = { ...next, newer: query.cursor ? next.newer : page.newer };
  }
  return page;
}

function useLog(id: string, filter: LogFilter, ticks: number) {
  const [window, setWindow] = useState<LogWindow>(emptyWindow);
  const [busy, setBusy] = useState<'older' | 'newer' | null>('older');
  const [error, setError] = useState<string | null>(null);
  const state = useRef({ window, abort: new AbortController(), older: false, newer: false, ready: false });
  const key = JSON.stringify(filter);
  const update = (next: LogWindow) => {
    state.current.window = next;
    setWindow(next);
  };

  const run = useCallback(async (direction: 'older' | 'newer', work: (signal: AbortSignal) => Promise<void>) => {
    const { abort } = state.current;
    if (state.current[direction]) return;
    state.current[direction] = true;
    setBusy(direction);
    try {
      await work(abort.signal);
      if (!abort.signal.aborted) setError(null);
    } catch (problem) {
      if (!isAbort(problem) && !abort.signal.aborted) setError(messageOf(problem));
    } finally {
      // A newer filter has its own state.
      if (state.current.abort === abort) {
        state.current[direction] = false;
        setBusy(null);
      }
    }
  }, [id, key]);

  const loadFirst = useCallback(() => run('older', async (signal) => {
    const page = await readUntilLines(id, { ...filter, limit: PAGE_LINES }, signal);
    if (signal.aborted) return;
    state.current.ready = true;
    update(firstPage(page));
  }), [run]);

  const loadOlder = useCallback(() => run('older', async (signal) => {
    const cursor = olderCursor(state.current.window);
    if (cursor === null) return;
    const page = await readUntilLines(id, { ...filter, cursor, direction: 'older', limit: PAGE_LINES }, signal);
    if (!signal.aborted) update(prepend(state.current.window, page));
  }), [run]);

  const loadNewer = useCallback(() => run('newer', async (signal) => {
    for (;;) {
      const cursor = newerCursor(state.current.window);
      if (cursor === null) return;
      const page = await api.logs(id, { ...filter, cursor, direction: 'newer', limit: PAGE_LINES }, signal);
      if (signal.aborted) return;
      const more = page.newer !== cursor && (page.lines.length >= PAGE_LINES || page.lines.length === 0);
      update(append(state.current.window, page, more));
      if (!more) return;
    }
  }), [run]);

  useEffect(() => {
    state.current = { window: emptyWindow(), abort: new AbortController(), older: false, newer: false, ready: false };
    setWindow(state.current.window);
    void loadFirst();
    const { abort } = state.current;
    return () => abort.abort();
  }, [loadFirst]);
  return { window, busy, error, loadFirst, loadOlder, loadNewer, isReady: () => state.current.ready, ticks };
}

const Lines = memo(function Lines({ block, pattern, color }: { block: Block; pattern: RegExp | null; color: Theme }) {
  return (
    <>
      {block.lines.map((line, i) => (
        <div class="log-line" key={i}>
          <span class="log-time" title={dateTime(line.time)}>{clock(new Date(line.time))}</span>
          <span class="log-task" style={{ color: styleOf(hash(line.task) % 10, color).color }}>{line.task}{line.attempt > 1 && `#${line.attempt}`}</span>
          <span class="log-text">
            {marked(line.text, pattern).map((piece) => (piece.match ? <mark>{piece.text}</mark> : piece.text))}
          </span>
        </div>
      ))}
    </>
  );
});

function LogFilters({ details, filter, text, setText, wrap, setWrap, follow, setFollow }: {
  details: JobDetails; filter: LogFilter; text: string; setText: (text: string) => void;
  wrap: boolean; setWrap: (wrap: boolean) => void; follow: boolean; setFollow: (follow: boolean) => void;
}) {
  const attempts = Math.max(1, ...details.tasks.map((task) => task.attempt), ...details.attempts.map((a) => a.attempt));
  return (
    <div class="controls">
      <label>Task
        <select value={filter.task[0] ?? ''} onChange={(event) => setParams({ task: event.currentTarget.value })}>
          <option value="">all</option>
          {details.tasks.map((task) => <option value={task.task} key={task.task}>{task.task}</option>)}
        </select>
      </label>
      {attempts > 1 && (
        <label>Attempt
          <select value={filter.attempt ?? ''} onChange={(event) => setParams({ attempt: event.currentTarget.value })}>
            <option value="">all</option>
            {Array.from({ length: attempts }, (_, i) => <option value={i + 1} key={i}>{i + 1}</option>)}
          </select>
        </label>
      )}
      <input
        type="search" data-search class="grow" placeholder="Search: regular expression" aria-label="Search in the output, a regular expression" value={text}
        maxLength={1000} onInput={(event) => setText(event.currentTarget.value)}
      />
      <label class="check"><input type="checkbox" checked={wrap} onChange={(event) => setWrap(event.currentTarget.checked)} /> wrap</label>
      <label class="check"><input type="checkbox" checked={follow} onChange={(event) => setFollow(event.currentTarget.checked)} /> follow</label>
    </div>
  );
}

export function LogsTab({ details, ticks, params }: { details: JobDetails; ticks: number; params: URLSearchParams }) {
  const id = details.job.id;
  const filter: LogFilter = {
    task: params.get('task') ? [params.get('task')!] : [], grep: params.get('grep') ?? '', attempt: Number(params.get('attempt')) || null,
  };
  const [text, setText] = useState(filter.grep);
  const settled = useDebounced(text, 300);
  useEffect(() => {
    if (settled !== filter.grep) setParams({ grep: settled });
  }, [settled]);
  const [wrap, setWrap] = useState(true);
  const [follow, setFollow] = useState(true);
  const log = useLog(id, filter, ticks);
  const box = useRef<HTMLDivElement>(null);
  const height = useRef({ first: -1, top: 0, size: 0 });
  const pattern = useMemo(() => compilePattern(filter.grep), [filter.grep]);
  const color = useStore(theme);

  useEffect(() => {
    if (log.isReady() && (follow || log.window.atEnd)) void log.loadNewer();
  }, [ticks, follow]);

  // Lines that arrive above the view must not move it; with `follow` the end stays in view.
  useLayoutEffect(() => {
    const node = box.current;
    if (!node) return;
    const first = log.window.blocks[0]?.key ?? -1;
    const before = height.current;
    if (follow) node.scrollTop = node.scrollHeight;
    else if (first !== before.first && before.first >= 0) node.scrollTop = before.top + (node.scrollHeight - before.size);
    height.current = { first, top: node.scrollTop, size: node.scrollHeight };
  }, [log.window, follow, wrap]);

  const onScroll = () => {
    const node = box.current;
    if (!node) return;
    const movedUp = node.scrollTop < height.current.top - 2;
    height.current = { ...height.current, top: node.scrollTop, size: node.scrollHeight };
    const fromEnd = node.scrollHeight - node.scrollTop - node.clientHeight;
    if (follow && movedUp && fromEnd > 40) setFollow(false);
    if (!follow && fromEnd < 4 && log.window.atEnd) setFollow(true);
    if (node.scrollTop < NEAR_PX && olderCursor(log.window) !== null) void log.loadOlder();
    if (fromEnd < NEAR_PX && !log.window.atEnd) void log.loadNewer();
  };
  const lines = lineCount(log.window);
  const goToEnd = (value: boolean) => {
    setFollow(value);
    if (value && !log.window.atEnd) void log.loadFirst();
  };
  return (
    <div class="logs">
      <LogFilters details={details} filter={filter} text={text} setText={setText} wrap={wrap} setWrap={setWrap} follow={follow} setFollow={goToEnd} />
      {log.error && <ErrorBox message={log.error} retry={() => void log.loadFirst()} />}
      <div class={`log ${wrap ? 'log-wrap' : ''}`} ref={box} onScroll={onScroll} tabIndex={0} role="log" aria-label="Output of the tasks" aria-live="off">
        {lines > 0 && (
          olderCursor(log.window) === null ? <p class="log-edge muted">Start of the output</p>
            : <p class="log-edge"><button type="button" class="link" onClick={() => void log.loadOlder()}>{log.busy === 'older' ? 'Reading older lines…' : 'Older lines'}</button></p>
        )}
        {log.window.blocks.map((block) => <Lines key={block.key} block={block} pattern={pattern} color={color} />)}
        {lines === 0 && (log.busy ? <p class="log-edge muted" role="status">{filter.grep ? 'Searching…' : 'Reading…'}</p>
          : <Empty title={filter.grep ? 'No line matches' : 'No output yet'} />)}
      </div>
      <p class="muted log-status">{count(lines, 'line')} shown{!follow && log.window.atEnd ? ', not following' : ''}</p>
    </div>
  );
}
