// The head of a job's page: is it running, is it learning, is it fast, what is wrong.
import type { ComponentChildren } from 'preact';
import { FINISHED, type JobDetails, type Series, type Task } from '../../api.ts';
import { Spark } from '../../chart/Spark.tsx';
import { median, trend, type Trend } from '../../chart/smooth.ts';
import { compact, count, dateTime, duration, eta, integer, number, percent, secondsBetween } from '../../format.ts';
import { useNow } from '../../parts/hooks.ts';
import { ProgressBar, State, Tags, toneOf } from '../../parts/parts.tsx';
import { jobUrl } from '../../router.ts';
import { findSeries } from './series.ts';

const TREND_TONE: Record<Trend, string> = { falling: 'good', flat: 'idle', rising: 'warn', 'not finite': 'bad', unknown: 'idle' };

function Tile({ title, children, sub, tone }: { title: string; children: ComponentChildren; sub?: ComponentChildren; tone?: string }) {
  return (
    <div class={`tile ${tone ? `tile-${tone}` : ''}`}>
      <dt>{title}</dt>
      <dd>{children}{sub && <span class="tile-sub">{sub}</span>}</dd>
    </div>
  );
}

function ProgressTile({ details, now }: { details: JobDetails; now: number }) {
  const { job } = details;
  const elapsed = secondsBetween(job.started, job.finished, now);
  const left = job.progress && !FINISHED.has(job.state) ? eta(job.progress.step, job.progress.steps, elapsed) : null;
  const steps = job.progress && (job.progress.steps === null ? `step ${integer(job.progress.step)}` : `step ${integer(job.progress.step)} of ${integer(job.progress.steps)}`);
  return (
    <Tile title="Progress" sub={[steps, left !== null && `${duration(left)} left`].filter(Boolean).join(' · ')}>
      <ProgressBar progress={job.progress} tone={toneOf(job.state)} label="Progress" />
    </Tile>
  );
}

function LossTile({ details, series }: { details: JobDetails; series: readonly Series[] }) {
  const loss = findSeries(series, 'loss');
  const direction = loss ? trend(loss.values) : 'unknown';
  const value = details.job.progress?.loss ?? loss?.values[loss.values.length - 1] ?? null;
  const ended = FINISHED.has(details.job.state);
  return (
    <Tile title="Loss" sub={direction !== 'unknown' && <span class={`tone-${TREND_TONE[direction]}`}>{ended ? `was ${direction}` : direction}</span>}>
      <span class="big num">{number(value)}</span>
      {loss && <Spark values={loss.values} label="Loss over time" />}
    </Tile>
  );
}

function RateTile({ details, series }: { details: JobDetails; series: readonly Series[] }) {
  const rate = findSeries(series, 'examples_per_second');
  const value = details.job.progress?.examples_per_second ?? rate?.values[rate.values.length - 1] ?? null;
  const usual = rate ? median(rate.values) : null;
  const slow = value !== null && usual !== null && usual > 0 && rate!.values.length >= 5 ? value / usual - 1 : null;
  const text = slow === null || FINISHED.has(details.job.state) ? null : Math.abs(slow) < 0.1 ? 'as usual' : `${percent(Math.abs(slow))} ${slow < 0 ? 'below' : 'above'} its median`;
  return (
    <Tile title="Examples/s" sub={text && <span class={slow! < -0.25 ? 'tone-warn' : ''}>{text}</span>}>
      <span class="big num">{compact(value)}</span>
      {rate && <Spark values={rate.values} label="Examples per second over time" />}
    </Tile>
  );
}

function taskSummary(tasks: readonly Task[]): string {
  const counts = new Map<string, number>();
  for (const task of tasks) counts.set(task.state, (counts.get(task.state) ?? 0) + 1);
  return [...counts].map(([state, n]) => `${n} ${state.toLowerCase()}`).join(', ');
}

function TasksTile({ tasks, ended }: { tasks: readonly Task[]; ended: boolean }) {
  const restarts = tasks.reduce((n, task) => n + task.restarts, 0);
  const stragglers = ended ? [] : tasks.filter((task) => task.waits?.straggler).map((task) => task.task);
  const sub = [taskSummary(tasks), restarts > 0 && count(restarts, 'restart')].filter(Boolean).join(' · ');
  return (
    <Tile title="Tasks" sub={stragglers.length > 0 ? <><span class="tone-warn">others wait for {stragglers.join(', ')}</span></> : sub}>
      <span class="big num">{tasks.length}</span>
    </Tile>
  );
}

export function Head({ details, series, children }: { details: JobDetails; series: readonly Series[]; children: ComponentChildren }) {
  const { job } = details;
  const now = useNow();
  return (
    <header class="job-head">
      <div class="job-title">
        <h1>{job.name}</h1>
        <span class="mono muted job-id">{job.id}</span>
        <State state={job.state} />
        {job.reason && !job.failure && <span class="job-reason">{job.reason}</span>}
        <Tags tags={job.notes.tags} />
        <span class="spacer" />
        {children}
      </div>
      <dl class="tiles">
        <ProgressTile details={details} now={now} />
        <LossTile details={details} series={series} />
        <RateTile details={details} series={series} />
        <Tile title="Duration" sub={job.started ? `since ${dateTime(job.started)}` : `created ${dateTime(job.created)}`}>
          <span class="big num">{duration(secondsBetween(job.started, job.finished, now))}</span>
        </Tile>
        <TasksTile tasks={details.tasks} ended={FINISHED.has(job.state)} />
      </dl>
      <p class="facts muted">
        <span>{job.platform}</span>
        {job.model_dir && <span>model dir <span class="mono">{job.model_dir}</span></span>}
        {job.resumed_from && <span>resumed from <a href={jobUrl(job.resumed_from)}>{job.resumed_from}</a></span>}
        {job.notes.note && <span class="note">{job.notes.note}</span>}
      </p>
    </header>
  );
}
