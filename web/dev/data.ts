// Plausible jobs for development, without a server of Muster.
import type {
  Attempt, Checkpoint, Graph, JobDetails, JobEvent, JobState, JobSummary, LogLine, Series, Task, TaskSamples,
} from '../src/api.ts';

// A small deterministic generator, so that screenshots can be compared.
export function random(seed: number): () => number {
  let state = (seed * 2654435761) >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 4294967296;
  };
}

const NAMES = ['mnist', 'resnet18-cifar', 'embedding', 'wide-deep', 'lm-small', 'allreduce', 'ranker', 'mnist-sweep'];
const PLATFORMS = ['local', 'local', 'local', 'ssh', 'kubernetes', 'vertex'];
const TAGS = ['baseline', 'sweep', 'paper', 'debug', 'lr-test'];
const START = Date.now();

export interface FakeJob {
  index: number;
  summary: JobSummary;
  seed: number;
  lr: number;
  batch: number;
  metricPoints: number;
  started: number;
  steps: number;
  stopped?: number;
}

const iso = (ms: number): string => new Date(ms).toISOString();

function stateOf(index: number, r: number): JobState {
  if (index === 0) return 'Running';
  if (index === 1) return 'Failed';
  if (index < 5) return (['Running', 'Restarting', 'Pending'] as const)[index - 2]!;
  if (r < 0.68) return 'Succeeded';
  if (r < 0.82) return 'Failed';
  if (r < 0.94) return 'Stopped';
  if (r < 0.96) return 'Unreachable';
  return 'Succeeded';
}

export function makeJob(index: number, total: number, points: number): FakeJob {
  const r = random(index + 1);
  r();
  const state = stateOf(index, r());
  const name = total === 1 || index === 0 ? 'mnist' : NAMES[Math.floor(r() * NAMES.length)]!;
  const created = START - (index === 0 ? 150e3 : index < 5 ? index * 400e3 : index * 47 * 60e3 + Math.floor(r() * 20e5));
  const started = created + 4000;
  const steps = 2000;
  const ran = 300e3 + Math.floor(r() * 5400e3);
  const ended = ['Succeeded', 'Failed', 'Stopped'].includes(state);
  const id = `${name}-${(((index + 17) * 48271) % 1048576).toString(16).padStart(5, '0')}`;
  const lr = [0.1, 0.03, 0.01, 0.003][index % 4]!;
  const step = state === 'Succeeded' ? steps : Math.floor(200 + r() * (steps - 400));
  const failed = state === 'Failed';
  return {
    index, seed: index % 5, lr, batch: [64, 128][index % 2]!, metricPoints: points, started, steps,
    summary: {
      id, name, state,
      platform: index === 0 ? 'local' : PLATFORMS[Math.floor(r() * PLATFORMS.length)]!,
      reason: failed ? 'worker:1 failed' : state === 'Pending' ? 'waiting for 4 GPUs in zone europe-west4-a' : state === 'Unreachable' ? 'host-b does not respond' : null,
      created: iso(created),
      started: state === 'Pending' ? null : iso(started),
      finished: ended ? iso(started + ran) : null,
      directory: `/home/ada/.local/share/muster/jobs/${id}`,
      model_dir: `/home/ada/runs/${name}-${index}`,
      resumed_from: index === 2 ? 'mnist-7f3a0' : null,
      tasks: 4,
      failure: failed ? {
        summary: 'worker:1 failed: exit code 1: FloatingPointError: loss is not finite at step 1420',
        victims: ['chief:0', 'worker:0', 'ps:0'],
        not_restarted: 'worker:1: restart: exit-code (exit codes below 128 are final)',
        first: {
          task: 'worker:1', attempt: 2, time: iso(started + ran), exit_code: 1,
          cause: 'exit code 1: FloatingPointError: loss is not finite at step 1420',
          advice: 'read its last lines; `muster logs JOB worker:1` prints all of them',
          last_lines: [
            'Traceback (most recent call last):', '  File "train.py", line 88, in <module>', '    main()', '  File "train.py", line 61, in main',
            '    raise FloatingPointError(f"loss is not finite at step {step}")', 'FloatingPointError: loss is not finite at step 1420',
          ],
        },
      } : null,
      progress: state === 'Pending' ? null : { step, steps, loss: 0.05 + lr * r(), examples_per_second: state === 'Running' ? 11800 + 900 * r() : null },
      notes: { note: index === 1 ? 'Learning rate too high?' : '', tags: index % 3 === 0 ? [TAGS[index % TAGS.length]!] : [], hidden: false },
    },
  };
}

export function parametersOf(job: FakeJob): Record<string, string> {
  return {
    name: job.summary.name, model_dir: job.summary.model_dir ?? '', 'roles.worker.replicas': '2', 'roles.ps.replicas': '1',
    'train.model': 'lenet', 'train.data': '{format: idx, path: data/mnist}', 'train.optimizer.type': 'sgd', 'train.optimizer.learning_rate': String(job.lr),
    'train.batch_size': String(job.batch), 'train.steps': String(job.steps), 'train.seed': String(job.seed), 'train.checkpoint.every_steps': '250',
  };
}

export function fileOf(job: FakeJob): string {
  return `# MNIST with one parameter server
name: ${job.summary.name}
model_dir: ${job.summary.model_dir}

roles:
  chief: {}
  worker: {replicas: 2}
  ps: {replicas: 1}

train:
  model: lenet
  data: {format: idx, path: data/mnist}
  optimizer: {type: sgd, learning_rate: ${job.lr}}
  batch_size: ${job.batch}
  steps: ${job.steps}
  seed: ${job.seed}
  checkpoint: {every_steps: 250}
`;
}

// The step that the job has reached; a running job moves on.
export function stepOf(job: FakeJob): number {
  if (job.summary.state === 'Running' && job.index === 0) return Math.min(job.steps, Math.floor(((Date.now() - job.started) / 1000) * 5));
  return job.summary.progress?.step ?? 0;
}

export function seriesOf(job: FakeJob, names: readonly string[], most: number): Series[] {
  const reached = stepOf(job);
  if (reached === 0) return [];
  const all = ['loss', 'accuracy', 'eval/loss', 'eval/accuracy', 'examples_per_second', 'learning_rate', 'gradient_norm'];
  return all.filter((name) => names.length === 0 || names.includes(name)).map((name) => {
    const sparse = name.startsWith('eval/');
    const available = sparse ? Math.floor(reached / 250) : Math.max(1, Math.floor((job.metricPoints * reached) / job.steps));
    const count = Math.min(available, most);
    const r = random(job.index * 31 + name.length);
    const out: Series = { job: job.summary.id, name, count: available, steps: [], times: [], values: [] };
    for (let i = 1; i <= count; i++) {
      const step = sparse ? i * 250 : Math.max(1, Math.floor((reached * i) / count));
      out.steps.push(step);
      out.times.push(job.started / 1000 + step / 5);
      out.values.push(valueOf(name, step, job, r));
    }
    return out;
  });
}

function valueOf(name: string, step: number, job: FakeJob, r: () => number): number {
  const decay = Math.exp(-step * job.lr / 60);
  const noise = r() - 0.5;
  if (name === 'loss') return (0.04 + 2.2 * decay + job.seed * 0.01) * (1 + 0.35 * noise);
  if (name === 'eval/loss') return 0.06 + 2.1 * decay + job.seed * 0.01;
  if (name === 'accuracy') return Math.min(1, 0.99 - 0.85 * decay + 0.03 * noise);
  if (name === 'eval/accuracy') return 0.985 - 0.86 * decay - job.seed * 0.001;
  if (name === 'examples_per_second') return 12000 + 900 * noise - (step % 500 < 6 ? 7000 : 0);
  if (name === 'learning_rate') return job.lr * Math.cos((Math.PI / 2) * (step / job.steps));
  return 1.5 * decay + 0.4 + 0.5 * noise * noise;
}

export function tasksOf(job: FakeJob): Task[] {
  const { summary } = job;
  const failed = summary.state === 'Failed';
  return ['chief:0', 'worker:0', 'worker:1', 'ps:0'].map((task, i) => {
    const [role, index] = task.split(':') as [string, string];
    const waits = role === 'ps' ? null : { input: [0.08, 0.1, 0.46][i]!, compute: [0.55, 0.52, 0.44][i]!, exchange: [0.35, 0.36, 0.06][i]!, straggler: i === 2 };
    return {
      task, id: `${summary.id.slice(-5)}${i}`, role, index: Number(index),
      state: summary.state === 'Failed' ? (i === 2 ? 'Failed' : 'Stopped') : summary.state,
      attempt: i === 2 ? 2 : 1, restarts: i === 2 ? 1 : 0, host: summary.platform === 'local' ? 'workstation' : `host-${'abcd'[i]}`,
      address: `127.0.0.1:${23517 + i}`, pid: summary.finished ? null : 41200 + i, command: null,
      started: summary.started, finished: summary.finished, exit_code: summary.finished ? (failed && i === 2 ? 1 : 0) : null,
      reason: failed && i === 2 ? 'FloatingPointError: loss is not finite at step 1420' : null,
      progress: role === 'ps' || !summary.progress ? null : { step: stepOf(job), steps: job.steps, loss: null, examples_per_second: 4000 - i * 130 },
      waits,
    };
  });
}

function attemptsOf(job: FakeJob): Attempt[] {
  if (!job.summary.started) return [];
  const end = job.summary.finished;
  const until = end ? Date.parse(end) : Date.now();
  const first = iso(job.started + (until - job.started) * 0.4);
  const second = iso(job.started + (until - job.started) * 0.42);
  const outcome = (task: string) => (!end ? 'Running' : job.summary.state === 'Failed' ? (task === 'worker:1' ? 'Failed' : 'Stopped') : job.summary.state);
  return [
    ...['chief:0', 'worker:0', 'ps:0'].map((task) => ({ task, attempt: 1, started: job.summary.started!, finished: end, outcome: outcome(task) })),
    { task: 'worker:1', attempt: 1, started: job.summary.started, finished: first, outcome: 'killed by SIGKILL' },
    { task: 'worker:1', attempt: 2, started: second, finished: end, outcome: outcome('worker:1') },
  ];
}

export function eventsOf(job: FakeJob): JobEvent[] {
  const at = (s: number) => iso(job.started + s * 1000);
  return [
    { sequence: 1, time: at(0), kind: 'job', task: null, message: 'Starting' },
    { sequence: 2, time: at(1), kind: 'task', task: 'ps:0', message: 'Running on workstation, pid 41203' },
    { sequence: 3, time: at(1), kind: 'task', task: 'chief:0', message: 'Running on workstation, pid 41200' },
    { sequence: 4, time: at(2), kind: 'job', task: null, message: 'Running' },
    { sequence: 5, time: at(70), kind: 'restart', task: 'worker:1', message: 'killed by SIGKILL; restart 1 of 3 in 1s' },
    { sequence: 6, time: at(72), kind: 'task', task: 'worker:1', message: 'Running, attempt 2' },
  ];
}

export function detailsOf(job: FakeJob): JobDetails {
  const finished = job.summary.finished !== null;
  const progress = job.summary.progress && { ...job.summary.progress, step: stepOf(job) };
  return {
    job: { ...job.summary, progress }, tasks: tasksOf(job), machines: [], attempts: attemptsOf(job), events: eventsOf(job),
    actions: finished ? ['resume', 'evaluate', 'run', 'remove'] : ['stop', 'evaluate', 'run'],
  };
}

export function logLine(job: FakeJob, i: number): LogLine {
  const task = ['chief:0', 'worker:0', 'worker:1', 'ps:0'][i % 4]!;
  const step = Math.floor(i / 4) * 10;
  const time = iso(job.started + i * 250);
  if (i % 97 === 13) return { task, attempt: 1, time, text: '<img src=x onerror="alert(1)"> & <script>alert(2)</script> [31mred[0m' };
  if (i % 61 === 7) return { task, attempt: 1, time, text: 'warning: the input queue was empty for 812 ms; raise train.data.prefetch, or move the data to a local disk, because the reader is slower than the steps' };
  return { task, attempt: i > 400 && task === 'worker:1' ? 2 : 1, time, text: `step ${step} of ${job.steps}: loss ${(2.3 * Math.exp(-step / 600) + 0.05).toFixed(4)}, ${11000 + (i * 37) % 900} examples/s` };
}

export function logLength(job: FakeJob): number {
  if (job.index === 1) return 60000;
  if (job.index !== 0) return 900;
  return Math.floor((Date.now() - job.started) / 250);
}

export function samplesOf(job: FakeJob): TaskSamples[] {
  const n = 180;
  return ['chief:0', 'worker:0', 'worker:1', 'ps:0'].map((task, k) => {
    const r = random(k + job.index * 7);
    const s: TaskSamples = { task, times: [], cpu: [], cpu_peak: [], memory: [], memory_peak: [], read: [], written: [], received: [], sent: [] };
    for (let i = 0; i < n; i++) {
      const cpu = (k === 3 ? 0.4 : k === 2 ? 0.9 : 1.6) + r() * 0.3;
      const memory = (300 + k * 60 + Math.min(i, 60) * 2 + r() * 10) * 1048576;
      s.times.push(job.started / 1000 + i);
      s.cpu.push(cpu);
      s.cpu_peak.push(cpu + r() * 0.5);
      s.memory.push(memory);
      s.memory_peak.push(memory + r() * 3e7);
      s.read.push(k === 3 ? 0 : r() * 4e6);
      s.written.push(r() * 2e5);
      s.received.push(r() * 9e6);
      s.sent.push(r() * 9e6);
    }
    return s;
  });
}

export function checkpointsOf(job: FakeJob): Checkpoint[] {
  const result: Checkpoint[] = [];
  for (let step = 250; step <= stepOf(job); step += 250) {
    result.unshift({
      step, time: iso(job.started + step * 200), bytes: 1780000 + step, final: step === job.steps, best: step === 1500, made_by: job.summary.id,
      metrics: { loss: 0.06 + 2.1 * Math.exp(-step * job.lr / 60), accuracy: 0.985 - 0.86 * Math.exp(-step * job.lr / 60) },
    });
  }
  return result;
}

export function graphOf(): Graph {
  const graph: Graph = { nodes: [], devices: [{ device: '/job:ps/task:0', task: 'ps:0', bytes: 0 }, { device: '/job:ps/task:1', task: 'ps:1', bytes: 0 }] };
  let previous = 'chief_0/inputs';
  graph.nodes.push({ name: previous, op: 'Placeholder', device: '/job:chief/task:0', inputs: [], shape: [64, 1, 28, 28], bytes: null });
  const layers: [string, number[]][] = [['conv1', [6, 1, 5, 5]], ['conv2', [16, 6, 5, 5]], ['fc1', [120, 256]], ['fc2', [84, 120]], ['fc3', [10, 84]]];
  layers.forEach(([layer, shape], i) => {
    for (const [variable, size] of [['weight', shape], ['bias', [shape[0]!]]] as const) {
      const parts = layer === 'fc1' && variable === 'weight' ? 2 : 1;
      for (let part = 0; part < parts; part++) {
        const device = graph.devices[(i + part) % 2]!;
        const bytes = (4 * size.reduce((a, b) => a * b, 1)) / parts;
        device.bytes += bytes;
        graph.nodes.push({ name: `${layer}/${variable}${parts > 1 ? `/part_${part}` : ''}`, op: 'VariableV2', device: device.device, inputs: [], shape: [...size], bytes });
      }
    }
    const op = `chief_0/${layer}/${layer.startsWith('conv') ? 'convolution' : 'addmm'}`;
    graph.nodes.push({ name: op, op: layer.startsWith('conv') ? 'convolution' : 'addmm', device: '/job:chief/task:0', inputs: [previous, `${layer}/weight`, `${layer}/bias`], shape: null, bytes: null });
    graph.nodes.push({ name: `train/${layer}/weight`, op: 'ApplySgd', device: graph.devices[i % 2]!.device, inputs: [`${layer}/weight`], shape: null, bytes: null });
    previous = op;
  });
  graph.nodes.push({ name: 'chief_0/loss', op: 'Identity', device: '/job:chief/task:0', inputs: [previous], shape: [], bytes: null });
  return graph;
}
