import { useEffect, useState } from 'preact/hooks';
import { api, type Checkpoint, type JobDetails } from '../../api.ts';
import { bytes, dateTime, integer, number } from '../../format.ts';
import { useLoad } from '../../parts/hooks.ts';
import { Empty, ErrorBox, Loading } from '../../parts/parts.tsx';
import { go, jobUrl } from '../../router.ts';
import { useAction } from './Actions.tsx';
import { EvaluationResult } from './Evaluation.tsx';

const POLL_MS = 10000;

export const metricNames = (checkpoints: readonly Checkpoint[]): string[] =>
  [...new Set(checkpoints.flatMap((c) => Object.keys(c.metrics)))].sort();

export function CheckpointsTab({ details }: { details: JobDetails }) {
  const { job, actions } = details;
  const { data, error, reload } = useLoad((signal) => api.checkpoints(job.id, signal), [job.id]);
  const [evaluated, setEvaluated] = useState<number | null>(null);
  const action = useAction();
  const running = actions.includes('stop');
  useEffect(() => {
    if (!running) return;
    const timer = setInterval(() => !document.hidden && reload(), POLL_MS);
    return () => clearInterval(timer);
  }, [running, reload]);
  if (error && !data) return <ErrorBox message={error} retry={reload} />;
  if (!data) return <Loading what="checkpoints" />;
  const { checkpoints } = data;
  if (checkpoints.length === 0) {
    return <Empty title="No checkpoints"><p class="muted">{job.model_dir ? <>There is none in <code>{job.model_dir}</code> yet.</> : 'The job has no model dir.'}</p></Empty>;
  }
  const metrics = metricNames(checkpoints);
  return (
    <>
      {action.error && <ErrorBox message={action.error} />}
      <div class="table-wrap" tabIndex={0} role="region" aria-label="Checkpoints, newest first">
        <table>
          <thead>
            <tr><th class="num">Step</th><th>Saved</th><th class="num">Size</th>{metrics.map((name) => <th class="num" key={name}>{name}</th>)}<th>Kind</th><th>Saved by</th><th><span class="sr">Actions</span></th></tr>
          </thead>
          <tbody>
            {checkpoints.map((c) => (
              <tr key={c.step}>
                <td class="num">{integer(c.step)}</td>
                <td class="num left">{dateTime(c.time)}</td>
                <td class="num">{bytes(c.bytes)}</td>
                {metrics.map((name) => <td class="num" key={name}>{number(c.metrics[name])}</td>)}
                <td>{[c.best && 'best', c.final && 'final'].filter(Boolean).join(', ') || '–'}</td>
                <td>{c.made_by && c.made_by !== job.id ? <a href={jobUrl(c.made_by)}>{c.made_by}</a> : c.made_by ? 'this job' : '–'}</td>
                <td class="row-actions">
                  {actions.includes('resume') && (
                    <button type="button" disabled={action.busy} onClick={() => action.run(async () => go(jobUrl((await api.resume(job.id, c.step)).id)))}>Resume from here</button>
                  )}
                  {actions.includes('evaluate') && <button type="button" onClick={() => setEvaluated(c.step)}>Evaluate</button>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {evaluated !== null && <EvaluationResult id={job.id} step={evaluated} onClose={() => setEvaluated(null)} />}
    </>
  );
}
