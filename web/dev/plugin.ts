// Answers the API with made-up data during `npm run dev`. The number of jobs and of points of a metric come from the
// environment: JOBS=10000 POINTS=10000 npm run dev
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Plugin } from 'vite';
import type { JobSummary } from '../src/api.ts';
import {
  checkpointsOf, detailsOf, eventsOf, fileOf, graphOf, logLength, logLine, makeJob, parametersOf, samplesOf, seriesOf, stepOf, type FakeJob,
} from './data.ts';

class HttpError extends Error {
  constructor(readonly status: number, readonly code: string, message: string) {
    super(message);
  }
}

export class FakeApi {
  private jobs: FakeJob[];
  private readonly streams = new Set<ServerResponse>();
  constructor(count: number, points: number) {
    this.jobs = Array.from({ length: count }, (_, i) => makeJob(i, count, points));
    setInterval(() => this.tick(), 1000).unref();
  }

  private tick(): void {
    const running = this.jobs.filter((job) => job.summary.state === 'Running').map((job) => this.summary(job));
    if (running.length > 0) this.send('jobs', { changed: running, removed: [] });
    this.send('log', {});
    this.send('metrics', {});
    const first = this.jobs[0];
    if (first) this.send('job', detailsOf(first), first.summary.id);
  }

  private send(event: string, data: unknown, job?: string): void {
    for (const stream of this.streams) {
      const watched = (stream as { watched?: string }).watched;
      if (job !== undefined && watched !== job) continue;
      if (event !== 'jobs' && event !== 'job' && !watched) continue;
      stream.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    }
  }

  private summary(job: FakeJob): JobSummary {
    const { progress } = job.summary;
    return { ...job.summary, progress: progress && { ...progress, step: stepOf(job) } };
  }

  private find(id: string): FakeJob {
    const job = this.jobs.find((j) => j.summary.id === id);
    if (!job) throw new HttpError(404, 'NOT_FOUND', `no job '${id}'`);
    return job;
  }

  private list(params: URLSearchParams) {
    const states: Record<string, number> = {};
    for (const job of this.jobs) states[job.summary.state] = (states[job.summary.state] ?? 0) + 1;
    const wanted = params.getAll('state').map((s) => s.toLowerCase());
    const search = (params.get('search') ?? '').toLowerCase();
    const platform = params.get('platform');
    const found = this.jobs.filter(({ summary: s }) =>
      (wanted.length === 0 || wanted.includes(s.state.toLowerCase())) && (!platform || s.platform === platform) &&
      (search === '' || [s.id, s.name, ...s.notes.tags].some((text) => text.toLowerCase().includes(search))));
    const offset = Number(params.get('offset') ?? 0);
    const page = found.slice(offset, offset + Number(params.get('limit') ?? 100));
    const details = params.get('details') === 'true';
    return {
      total: found.length, states,
      jobs: page.map((job) => (details ? { ...this.summary(job), parameters: parametersOf(job), metrics: this.lastMetrics(job) } : this.summary(job))),
    };
  }

  private lastMetrics(job: FakeJob) {
    return Object.fromEntries(seriesOf(job, [], 50).map((s) => [s.name, s.values[s.values.length - 1] ?? null]));
  }

  private logs(job: FakeJob, params: URLSearchParams) {
    const length = logLength(job);
    const limit = Number(params.get('limit') ?? 500);
    const newer = params.get('direction') === 'newer';
    const grep = params.get('grep');
    const expression = grep ? new RegExp(grep) : null;
    const tasks = params.getAll('task');
    const attempt = Number(params.get('attempt')) || null;
    const cursor = params.get('cursor');
    const keep = (i: number) => {
      const line = logLine(job, i);
      return (tasks.length === 0 || tasks.includes(line.task)) && (!attempt || line.attempt === attempt) && (!expression || expression.test(line.text));
    };
    const lines: number[] = [];
    let at = cursor === null ? length : Number(cursor);
    const budget = 20000;
    if (newer) {
      const from = at;
      while (at < length && lines.length < limit && at - from < budget) if (keep(at++)) lines.push(at - 1);
      return { lines: lines.map((i) => logLine(job, i)), older: from > 0 ? String(from) : null, newer: String(at) };
    }
    const to = at;
    while (at > 0 && lines.length < limit && to - at < budget) if (keep(--at)) lines.unshift(at);
    return { lines: lines.map((i) => logLine(job, i)), older: at > 0 ? String(at) : null, newer: String(to) };
  }

  private compare(ids: string[]) {
    const jobs = ids.map((id) => this.find(id));
    const parameters = jobs.map(parametersOf);
    const names = [...new Set(parameters.flatMap(Object.keys))];
    const series = jobs.map((job) => seriesOf(job, [], 200));
    const metrics = [...new Set(series.flat().map((s) => s.name))];
    return {
      jobs: ids,
      parameters: names.map((name) => {
        const values = parameters.map((p) => p[name] ?? null);
        return { name, differs: new Set(values).size > 1, values };
      }),
      metrics: metrics.map((name) => ({
        name,
        values: series.map((list) => {
          const s = list.find((one) => one.name === name);
          if (!s || s.values.length === 0) return null;
          const values = s.values.filter((v): v is number => v !== null);
          return { last: values.at(-1) ?? null, last_step: s.steps.at(-1) ?? 0, min: Math.min(...values), max: Math.max(...values) };
        }),
      })),
      problems: [],
    };
  }

  private act(job: FakeJob, action: string, body: Record<string, unknown>): unknown {
    const { summary } = job;
    if (action === 'notes') return (summary.notes = body as never);
    if (action === 'evaluate') return { step: body.step ?? stepOf(job), metrics: { accuracy: 0.9812, loss: 0.0631 } };
    if (action === 'stop') {
      Object.assign(summary, { state: 'Stopped', reason: 'stopped by ada', finished: new Date().toISOString() });
      this.send('job', detailsOf(job), summary.id);
      return summary;
    }
    for (const change of (body.set as string[] | undefined) ?? []) {
      if (/batch_size=-?\D/.test(change)) throw new HttpError(400, 'INVALID_ARGUMENT', `--set ${change}: train.batch_size: expected an integer\njob.yaml:14:15: train.batch_size must be at least 1`);
    }
    const next = makeJob(this.jobs.length + 7, 2, 2000);
    Object.assign(next.summary, { name: (body.name as string) || summary.name, state: 'Running', failure: null, reason: null, finished: null, created: new Date().toISOString(), started: new Date().toISOString() });
    next.summary.resumed_from = action === 'resume' ? summary.id : null;
    this.jobs.unshift(next);
    this.send('jobs', { changed: [next.summary], removed: [] });
    return next.summary;
  }

  stream(request: IncomingMessage, response: ServerResponse, params: URLSearchParams): void {
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
    (response as { watched?: string }).watched = params.get('job') ?? '';
    this.streams.add(response);
    response.write(': hello\n\n');
    const job = this.jobs.find((j) => j.summary.id === params.get('job'));
    if (job) response.write(`event: job\ndata: ${JSON.stringify(detailsOf(job))}\n\n`);
    request.on('close', () => this.streams.delete(response));
  }

  answer(method: string, path: string, params: URLSearchParams, body: Record<string, unknown>): unknown {
    if (path === '/api/session') {
      return { version: '0.0-dev', csrf: 'fake', platforms: ['local', 'ssh', 'kubernetes', 'vertex'].map((name) => ({ name, title: name })) };
    }
    if (path === '/api/jobs') return this.list(params);
    const ids = params.getAll('job');
    if (path === '/api/series') return { series: ids.flatMap((id) => seriesOf(this.find(id), params.getAll('name'), Number(params.get('points') ?? 1000))), problems: [] };
    if (path === '/api/compare') return this.compare(ids);
    if (path === '/api/metrics') return { metrics: ids.flatMap((id) => seriesOf(this.find(id), [], 50).map((s) => ({ job: id, name: s.name, count: s.count, first_step: s.steps[0], last_step: s.steps.at(-1), last: s.values.at(-1), min: 0, max: 1 }))), problems: [] };
    const match = /^\/api\/jobs\/([^/]+)(?:\/(\w+))?$/.exec(path);
    if (!match) throw new HttpError(404, 'NOT_FOUND', 'no such resource');
    const job = this.find(decodeURIComponent(match[1]!));
    if (method === 'DELETE') {
      this.jobs = this.jobs.filter((j) => j !== job);
      this.send('jobs', { changed: [], removed: [job.summary.id] });
      return undefined;
    }
    if (method !== 'GET') return this.act(job, match[2] ?? '', body);
    return this.part(job, match[2], params);
  }

  private part(job: FakeJob, part: string | undefined, params: URLSearchParams): unknown {
    switch (part) {
      case undefined: return detailsOf(job);
      case 'logs': return this.logs(job, params);
      case 'samples': return { tasks: samplesOf(job) };
      case 'checkpoints': return { checkpoints: checkpointsOf(job) };
      case 'graph': return graphOf();
      case 'events': return { events: eventsOf(job).filter((e) => e.sequence > Number(params.get('after') ?? 0)) };
      case 'file': {
        const other = params.get('with');
        return {
          text: fileOf(job), parameters: Object.entries(parametersOf(job)).map(([name, value]) => ({ name, value })),
          diff: other ? diff(fileOf(this.find(other)), fileOf(job)) : null,
        };
      }
      default: throw new HttpError(404, 'NOT_FOUND', 'no such resource');
    }
  }
}

// Lines at the same place are compared: enough for files of one template.
function diff(before: string, after: string) {
  const a = before.split('\n');
  const b = after.split('\n');
  return b.flatMap((text, i) => (a[i] === text ? [{ change: 'same', text }] : [{ change: 'removed', text: a[i] ?? '' }, { change: 'added', text }]));
}

async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
}

export function fakeServer(): Plugin {
  return {
    name: 'muster-fake',
    configureServer(server) {
      const api = new FakeApi(Number(process.env.JOBS ?? 30), Number(process.env.POINTS ?? 2000));
      server.middlewares.use((request, response, next) => void handle(api, request, response, next));
    },
    configurePreviewServer(server) {
      const api = new FakeApi(Number(process.env.JOBS ?? 30), Number(process.env.POINTS ?? 2000));
      server.middlewares.use((request, response, next) => {
        response.setHeader('Content-Security-Policy', POLICY);
        void handle(api, request, response, next);
      });
    },
  };
}

// That of `muster dashboard`.
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; " +
  "base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

async function handle(api: FakeApi, request: IncomingMessage, response: ServerResponse, next: () => void): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://localhost');
  if (!url.pathname.startsWith('/api/')) return next();
  if (url.pathname === '/api/stream') return api.stream(request, response, url.searchParams);
  try {
    const answer = api.answer(request.method ?? 'GET', url.pathname, url.searchParams, await bodyOf(request));
    response.writeHead(answer === undefined ? 204 : 200, { 'Content-Type': 'application/json' });
    response.end(answer === undefined ? '' : JSON.stringify(answer));
  } catch (error) {
    const status = error instanceof HttpError ? error.status : 500;
    response.writeHead(status, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify({ error: { code: error instanceof HttpError ? error.code : 'INTERNAL', message: (error as Error).message } }));
  }
}
