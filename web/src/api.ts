// The client of the HTTP API. The types mirror docs/dashboard.openapi.yaml.

export type JobState =
  | 'Pending' | 'Starting' | 'Running' | 'Restarting' | 'Suspended'
  | 'Succeeded' | 'Failed' | 'Stopped' | 'Unreachable';

export const JOB_STATES: readonly JobState[] = [
  'Running', 'Starting', 'Pending', 'Restarting', 'Suspended', 'Failed', 'Unreachable', 'Stopped', 'Succeeded',
];

export interface Session {
  version: string;
  csrf: string;
  platforms: { name: string; title: string }[];
}

export interface Progress {
  step: number;
  steps: number | null;
  loss: number | null;
  examples_per_second: number | null;
}

export interface Notes {
  note: string;
  tags: string[];
  hidden: boolean;
}

export interface FirstFailure {
  task: string;
  attempt: number;
  time: string;
  cause: string;
  advice: string | null;
  exit_code: number | null;
  last_lines: string[];
}

export interface Failure {
  summary: string;
  victims: string[];
  not_restarted: string | null;
  first: FirstFailure | null;
}

export interface JobSummary {
  id: string;
  name: string;
  platform: string;
  state: JobState;
  reason: string | null;
  created: string;
  started: string | null;
  finished: string | null;
  directory: string | null;
  model_dir: string | null;
  resumed_from: string | null;
  tasks: number;
  failure: Failure | null;
  progress: Progress | null;
  notes: Notes;
  parameters?: Record<string, string>;
  metrics?: Record<string, number | null>;
}

export interface JobPage {
  total: number;
  states: Partial<Record<JobState, number>>;
  jobs: JobSummary[];
}

export interface Waits {
  input: number | null;
  compute: number | null;
  exchange: number | null;
  straggler: boolean;
}

export interface Task {
  task: string;
  id: string;
  role: string;
  index: number;
  state: string;
  attempt: number;
  restarts: number;
  host: string | null;
  address: string | null;
  pid: number | null;
  command: string | null;
  started: string | null;
  finished: string | null;
  exit_code: number | null;
  reason: string | null;
  progress: Progress | null;
  waits: Waits | null;
}

export interface Machine {
  machine: string;
  role: string | null;
  provider: string | null;
  region: string | null;
  size: string | null;
  public_ip: string | null;
  status: string;
}

export interface Attempt {
  task: string;
  attempt: number;
  started: string;
  finished: string | null;
  outcome: string;
}

export interface JobEvent {
  sequence: number;
  time: string;
  kind: string;
  task: string | null;
  message: string;
}

export type Action = 'stop' | 'resume' | 'evaluate' | 'run' | 'remove';

export interface JobDetails {
  job: JobSummary;
  tasks: Task[];
  machines: Machine[];
  attempts: Attempt[];
  events: JobEvent[];
  actions: Action[];
}

export interface DiffLine {
  change: 'same' | 'removed' | 'added';
  text: string;
}

export interface Parameter {
  name: string;
  value: string;
}

export interface JobFile {
  text: string;
  parameters: Parameter[];
  diff: DiffLine[] | null;
}

export interface LogLine {
  task: string;
  attempt: number;
  time: string;
  text: string;
}

export interface LogPage {
  lines: LogLine[];
  older: string | null;
  newer: string;
}

export type Column = (number | null)[];

export interface TaskSamples {
  task: string;
  times: number[];
  cpu: Column;
  cpu_peak: Column;
  memory: Column;
  memory_peak: Column;
  read: Column;
  written: Column;
  received: Column;
  sent: Column;
}

export interface Checkpoint {
  step: number;
  time: string | null;
  bytes: number | null;
  final: boolean;
  best: boolean;
  made_by: string | null;
  metrics: Record<string, number | null>;
}

export interface GraphNode {
  name: string;
  op: string;
  device: string;
  inputs: string[];
  shape: number[] | null;
  bytes: number | null;
}

export interface GraphDevice {
  device: string;
  task: string | null;
  bytes: number;
}

export interface Graph {
  nodes: GraphNode[];
  devices: GraphDevice[];
}

export interface Metric {
  job: string;
  name: string;
  count: number;
  first_step: number;
  last_step: number;
  last: number | null;
  min: number | null;
  max: number | null;
}

export interface Series {
  job: string;
  name: string;
  count: number;
  steps: number[];
  times: Column;
  values: Column;
}

export interface MetricValues {
  last: number | null;
  last_step: number;
  min: number | null;
  max: number | null;
}

export interface Comparison {
  jobs: string[];
  parameters: { name: string; differs: boolean; values: (string | null)[] }[];
  metrics: { name: string; values: (MetricValues | null)[] }[];
  problems: string[];
}

export class ApiError extends Error {
  constructor(readonly status: number, readonly code: string, message: string) {
    super(message);
  }
}

// Called once when the server no longer accepts the session.
let onSessionEnd: () => void = () => {};
export function setSessionEndHandler(handler: () => void): void {
  onSessionEnd = handler;
}

let session: Promise<Session> | null = null;

export function getSession(): Promise<Session> {
  session ??= request<Session>('GET', '/api/session').catch((error: unknown) => {
    session = null;
    throw error;
  });
  return session;
}

type QueryValue = string | number | boolean | readonly string[] | null | undefined;

// Builds a query; lists repeat their name, empty values are left out.
export function query(values: Record<string, QueryValue>): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (Array.isArray(value)) for (const item of value as string[]) params.append(name, item);
    else if (value !== null && value !== undefined && value !== '' && value !== false) params.append(name, String(value));
  }
  const text = params.toString();
  return text === '' ? '' : `?${text}`;
}

async function errorOf(response: Response): Promise<ApiError> {
  const fallback = `the server answered ${response.status}`;
  try {
    const body = (await response.json()) as { error?: { code?: string; message?: string } };
    return new ApiError(response.status, body.error?.code ?? 'UNKNOWN', body.error?.message ?? fallback);
  } catch {
    return new ApiError(response.status, 'UNKNOWN', fallback);
  }
}

async function send(method: string, path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(path, { method, credentials: 'same-origin', cache: 'no-store', ...init });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiError(0, 'UNAVAILABLE', 'the dashboard does not respond; is `muster dashboard` still running?');
  }
}

async function request<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const headers: Record<string, string> = { Accept: 'application/json' };
  const init: RequestInit = { headers };
  if (signal) init.signal = signal;
  if (method !== 'GET') {
    headers['X-Muster-CSRF'] = (await getSession()).csrf;
    if (body !== undefined) {
      headers['Content-Type'] = 'application/json';
      init.body = JSON.stringify(body);
    }
  }
  const response = await send(method, path, init);
  if (response.status === 401) onSessionEnd();
  if (!response.ok) throw await errorOf(response);
  if (response.status === 204) return undefined as T;
  return (await response.json()) as T;
}

const at = (job: string, rest = ''): string => `/api/jobs/${encodeURIComponent(job)}${rest}`;

export interface JobQuery {
  offset?: number;
  limit?: number;
  state?: readonly string[];
  search?: string;
  platform?: string;
  details?: boolean;
}

export interface LogQuery {
  task?: readonly string[];
  grep?: string;
  attempt?: number | null;
  cursor?: string | null;
  direction?: 'older' | 'newer';
  limit?: number;
}

export const api = {
  jobs: (q: JobQuery, signal?: AbortSignal) => request<JobPage>('GET', `/api/jobs${query({ ...q })}`, undefined, signal),
  job: (id: string, signal?: AbortSignal) => request<JobDetails>('GET', at(id), undefined, signal),
  remove: (id: string) => request<void>('DELETE', at(id)),
  file: (id: string, other?: string, signal?: AbortSignal) =>
    request<JobFile>('GET', at(id, `/file${query({ with: other })}`), undefined, signal),
  events: (id: string, after: number, signal?: AbortSignal) =>
    request<{ events: JobEvent[] }>('GET', at(id, `/events${query({ after, limit: 1000 })}`), undefined, signal),
  logs: (id: string, q: LogQuery, signal?: AbortSignal) =>
    request<LogPage>('GET', at(id, `/logs${query({ ...q })}`), undefined, signal),
  samples: (id: string, signal?: AbortSignal) => request<{ tasks: TaskSamples[] }>('GET', at(id, '/samples'), undefined, signal),
  checkpoints: (id: string, signal?: AbortSignal) =>
    request<{ checkpoints: Checkpoint[] }>('GET', at(id, '/checkpoints'), undefined, signal),
  graph: (id: string, signal?: AbortSignal) => request<Graph>('GET', at(id, '/graph'), undefined, signal),
  metrics: (job: readonly string[], signal?: AbortSignal) =>
    request<{ metrics: Metric[]; problems: string[] }>('GET', `/api/metrics${query({ job })}`, undefined, signal),
  series: (job: readonly string[], name: readonly string[], points: number, signal?: AbortSignal) =>
    request<{ series: Series[]; problems: string[] }>('GET', `/api/series${query({ job, name, points })}`, undefined, signal),
  compare: (job: readonly string[], signal?: AbortSignal) =>
    request<Comparison>('GET', `/api/compare${query({ job })}`, undefined, signal),
  stop: (id: string, immediately: boolean) => request<JobSummary>('POST', at(id, '/stop'), { immediately }),
  resume: (id: string, step?: number) => request<JobSummary>('POST', at(id, '/resume'), step === undefined ? {} : { step }),
  evaluate: (id: string, step?: number) =>
    request<Record<string, unknown>>('POST', at(id, '/evaluate'), step === undefined ? {} : { step }),
  run: (id: string, body: { file?: string; set?: string[]; name?: string }) => request<JobSummary>('POST', at(id, '/run'), body),
  notes: (id: string, notes: Notes) => request<Notes>('PUT', at(id, '/notes'), notes),
};

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

export const FINISHED: ReadonlySet<string> = new Set(['Succeeded', 'Failed', 'Stopped']);
