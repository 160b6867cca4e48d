// Live data. EventSource reconnects after a lost connection; a server that refuses is tried again with back-off.
import { useEffect, useRef } from 'preact/hooks';
import { getSession, type JobDetails, type JobSummary } from './api.ts';
import { Store } from './store.ts';

export type Connection = 'connecting' | 'live' | 'lost';
export const connection = new Store<Connection>('connecting');

export interface StreamHandlers {
  // The connection is open, possibly again: read on from the own cursors.
  onOpen?: () => void;
  onJobs?: (changed: JobSummary[], removed: string[]) => void;
  onJob?: (details: JobDetails) => void;
  onLog?: () => void;
  onMetrics?: () => void;
}

const FIRST_RETRY_MS = 1000;
const MAX_RETRY_MS = 15000;

class Stream {
  private source: EventSource | null = null;
  private timer = 0;
  private delay = FIRST_RETRY_MS;
  private closed = false;

  constructor(private readonly url: string, private readonly handlers: () => StreamHandlers) {
    this.open();
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.source?.close();
  }

  private open(): void {
    const source = new EventSource(this.url);
    this.source = source;
    source.onopen = () => {
      this.delay = FIRST_RETRY_MS;
      connection.set('live');
      this.handlers().onOpen?.();
    };
    source.onerror = () => this.onError(source);
    source.addEventListener('jobs', (event) => {
      const data = JSON.parse((event as MessageEvent<string>).data) as { changed?: JobSummary[]; removed?: string[] };
      this.handlers().onJobs?.(data.changed ?? [], data.removed ?? []);
    });
    source.addEventListener('job', (event) => {
      this.handlers().onJob?.(JSON.parse((event as MessageEvent<string>).data) as JobDetails);
    });
    source.addEventListener('log', () => this.handlers().onLog?.());
    source.addEventListener('metrics', () => this.handlers().onMetrics?.());
  }

  private onError(source: EventSource): void {
    if (this.closed) return;
    connection.set('lost');
    // While connecting, the browser tries again by itself.
    if (source.readyState !== EventSource.CLOSED) return;
    this.timer = window.setTimeout(() => {
      // A request shows whether the session ended, which EventSource does not report.
      void getSessionAgain().finally(() => {
        if (!this.closed) this.open();
      });
    }, this.delay);
    this.delay = Math.min(2 * this.delay, MAX_RETRY_MS);
  }
}

async function getSessionAgain(): Promise<void> {
  try {
    await fetch('/api/session', { credentials: 'same-origin' }).then(async (response) => {
      if (response.status === 401) await getSession();
    });
  } catch {
    // The server does not respond; the next try follows.
  }
}

// Opens the stream of all jobs, or also of one, while the component is there.
export function useStream(job: string | null, handlers: StreamHandlers): void {
  const latest = useRef(handlers);
  latest.current = handlers;
  useEffect(() => {
    const stream = new Stream(job === null ? '/api/stream' : `/api/stream?job=${encodeURIComponent(job)}`, () => latest.current);
    return () => stream.close();
  }, [job]);
}

// Returns a function that runs `work` at most once at a time, and at most every `pauseMs` or three times as long as the work
// takes. A request while it runs leads to one more run.
export function throttled(work: () => Promise<void>, pauseMs: number): { (): void; cancel(): void } {
  let running = false;
  let again = false;
  let timer = 0;
  let cancelled = false;
  const run = async () => {
    timer = 0;
    running = true;
    again = false;
    const start = performance.now();
    try {
      await work();
    } finally {
      running = false;
    }
    if (cancelled) return;
    const pause = Math.max(pauseMs, 3 * (performance.now() - start));
    timer = window.setTimeout(() => {
      timer = 0;
      if (again) void run();
    }, pause);
  };
  const request = () => {
    if (cancelled) return;
    if (running || timer !== 0) again = true;
    else void run();
  };
  request.cancel = () => {
    cancelled = true;
    clearTimeout(timer);
  };
  return request;
}
