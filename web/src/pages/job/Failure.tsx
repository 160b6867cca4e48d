import type { Failure } from '../../api.ts';
import { dateTime } from '../../format.ts';

// The first-failure report: the cause, what to do, and the last lines of the task.
export function FailureReport({ failure, id }: { failure: Failure; id: string }) {
  const { first } = failure;
  return (
    <section class="failure" aria-label="Failure report">
      <h2>{first ? <><span class="mono">{first.task}</span> failed first: {first.cause}</> : failure.summary}</h2>
      {first?.advice && <p class="advice"><strong>What to do:</strong> {first.advice}</p>}
      {first && (
        <p class="muted">
          attempt {first.attempt} at {dateTime(first.time)}
          {first.exit_code !== null && first.exit_code !== undefined && `, exit code ${first.exit_code}`}
          {' · '}<a href={`/jobs/${encodeURIComponent(id)}?tab=logs&task=${encodeURIComponent(first.task)}`}>all output of {first.task}</a>
        </p>
      )}
      {first && first.last_lines?.length > 0 && <pre class="last-lines" tabIndex={0} aria-label={`Last lines of ${first.task}`}>{first.last_lines.join('\n')}</pre>}
      {failure.not_restarted && <p><span class="muted">not restarted:</span> {failure.not_restarted}</p>}
      {failure.victims?.length > 0 && <p><span class="muted">also ended:</span> {failure.victims.join(', ')}</p>}
    </section>
  );
}
