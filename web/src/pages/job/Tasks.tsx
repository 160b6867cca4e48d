import type { Attempt, Column, JobDetails, Task, TaskSamples } from '../../api.ts';
import { bytes, compact, dateTime, duration, integer, number, percent, secondsBetween } from '../../format.ts';
import { useNow } from '../../parts/hooks.ts';
import { useSamples } from './Resources.tsx';
import { Empty, State, toneOf } from '../../parts/parts.tsx';

const PARTS = ['input', 'compute', 'exchange'] as const;

function WaitBar({ task }: { task: Task }) {
  if (!task.waits) return <span class="muted">–</span>;
  const waits = task.waits;
  const text = PARTS.map((part) => `${part} ${percent(waits[part])}`).join(', ');
  return (
    <span class="waits" role="img" aria-label={`${task.task}: ${text}${waits.straggler ? ', straggler' : ''}`} title={text}>
      {PARTS.map((part) => <span key={part} class={`wait wait-${part}`} style={{ width: `${(waits[part] ?? 0) * 100}%` }} />)}
    </span>
  );
}

function WaitLegend() {
  return <p class="legend-line muted">{PARTS.map((part) => <span key={part}><span class={`swatch wait-${part}`} />{part}</span>)}</p>;
}

export function WaitBars({ tasks }: { tasks: readonly Task[] }) {
  return (
    <>
      <WaitLegend />
      <div class="wait-rows">
        {tasks.filter((task) => task.waits).map((task) => (
          <div class="wait-row" key={task.task}>
            <span class="mono">{task.task}</span>
            <WaitBar task={task} />
            {task.waits?.straggler ? <span class="badge tone-warn">others wait for it</span> : <span />}
          </div>
        ))}
      </div>
    </>
  );
}

const lastOf = (column: Column | undefined): number | null => column?.[column.length - 1] ?? null;

function TaskTable({ tasks, now, id, samples }: { tasks: readonly Task[]; now: number; id: string; samples: readonly TaskSamples[] }) {
  const usage = new Map(samples.map((s) => [s.task, s]));
  const waits = tasks.some((task) => task.waits);
  return (
    <div class="table-wrap" tabIndex={0} role="region" aria-label="Tasks">
      <table>
        <thead>
          <tr>
            <th>Task</th><th>State</th><th class="num">Attempt</th><th class="num">Restarts</th><th>Host</th><th class="num">PID</th>
            <th class="num">Step</th><th class="num">Ex/s</th><th class="num">CPU</th><th class="num">Memory</th>{waits && <th>Input / compute / exchange</th>}<th class="num">Duration</th><th>Reason</th>
          </tr>
        </thead>
        <tbody>
          {tasks.map((task) => (
            <tr key={task.task}>
              <td class="mono"><a href={`/jobs/${encodeURIComponent(id)}?tab=logs&task=${encodeURIComponent(task.task)}`} title="Its output">{task.task}</a></td>
              <td><State state={task.state} /></td>
              <td class="num">{task.attempt}</td>
              <td class="num">{task.restarts}</td>
              <td title={task.address ?? ''}>{task.host ?? '–'}</td>
              <td class="num">{task.pid ?? '–'}</td>
              <td class="num">{integer(task.progress?.step)}</td>
              <td class="num">{compact(task.progress?.examples_per_second)}</td>
              <td class="num">{number(lastOf(usage.get(task.task)?.cpu), 3)}</td>
              <td class="num">{bytes(lastOf(usage.get(task.task)?.memory))}</td>
              {waits && <td><WaitBar task={task} />{task.waits?.straggler && <span class="badge tone-warn">straggler</span>}</td>}
              <td class="num">{duration(secondsBetween(task.started, task.finished, now))}</td>
              <td class="wrap">{task.reason ?? ''}{task.exit_code !== null && task.exit_code !== 0 ? ` (exit code ${task.exit_code})` : ''}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const capital = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);

// An outcome is a state, in any case, or the reason of a failure.
function outcomeTone(outcome: string): string {
  const state = capital(outcome);
  if (state === 'Restarted') return 'warn';
  const tone = toneOf(state);
  return tone === 'idle' && state !== 'Stopped' ? 'bad' : tone;
}

// The attempts of every task over time.
function Timeline({ attempts, tasks, now }: { attempts: readonly Attempt[]; tasks: readonly Task[]; now: number }) {
  const order = tasks.map((task) => task.task);
  const names = [...order, ...new Set(attempts.map((a) => a.task).filter((name) => !order.includes(name)))];
  const start = Math.min(...attempts.map((a) => Date.parse(a.started)));
  const end = Math.max(...attempts.map((a) => (a.finished ? Date.parse(a.finished) : now)), start + 1000);
  const share = (time: number): number => (100 * (time - start)) / (end - start);
  return (
    <div class="timeline" role="region" aria-label="Timeline of attempts" tabIndex={0}>
      {names.map((name) => (
        <div class="timeline-row" key={name}>
          <span class="mono">{name}</span>
          <ol>
            {attempts.filter((a) => a.task === name).map((a) => {
              const from = share(Date.parse(a.started));
              const to = share(a.finished ? Date.parse(a.finished) : now);
              const text = `attempt ${a.attempt}: ${a.outcome}, ${dateTime(a.started)}, ${duration(secondsBetween(a.started, a.finished, now))}`;
              return (
                <li key={a.attempt} class={`tone-${outcomeTone(a.outcome)}`} style={{ left: `${from}%`, width: `max(3px, ${to - from}%)` }} title={text}>
                  <span>#{a.attempt} {capital(a.outcome)}</span>
                </li>
              );
            })}
          </ol>
        </div>
      ))}
      <div class="timeline-row muted"><span /><span class="timeline-ends"><span>{dateTime(new Date(start).toISOString())}</span><span>+{duration((end - start) / 1000)}</span></span></div>
    </div>
  );
}

export function TasksTab({ details }: { details: JobDetails }) {
  const now = useNow();
  const samples = useSamples(details.job.id, details.actions.includes('stop'));
  if (details.tasks.length === 0) return <Empty title="No tasks yet" />;
  return (
    <>
      <TaskTable tasks={details.tasks} now={now} id={details.job.id} samples={samples.data?.tasks ?? []} />
      {details.attempts.length > 0 && <><h2>Attempts</h2><Timeline attempts={details.attempts} tasks={details.tasks} now={now} /></>}
      {details.machines.length > 0 && <><h2>Machines</h2><Machines details={details} /></>}
    </>
  );
}

function Machines({ details }: { details: JobDetails }) {
  return (
    <div class="table-wrap" tabIndex={0} role="region" aria-label="Machines">
      <table>
        <thead><tr><th>Machine</th><th>Role</th><th>Provider</th><th>Region</th><th>Size</th><th>Address</th><th>Status</th></tr></thead>
        <tbody>
          {details.machines.map((m) => (
            <tr key={m.machine}>
              <td class="mono">{m.machine}</td><td>{m.role ?? '–'}</td><td>{m.provider ?? '–'}</td><td>{m.region ?? '–'}</td><td>{m.size ?? '–'}</td>
              <td class="mono">{m.public_ip ?? '–'}</td><td>{m.status}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
