import { useState } from 'preact/hooks';
import { api, type DiffLine, type JobDetails } from '../../api.ts';
import { count, dateTime } from '../../format.ts';
import { useLoad } from '../../parts/hooks.ts';
import { download, Empty, ErrorBox, Loading } from '../../parts/parts.tsx';
import { jobUrl, setParams } from '../../router.ts';
import { foldDiff, hasChanges } from './diff.ts';

const OTHERS = 100;
const SIGN = { same: ' ', added: '+', removed: '−' } as const;

function Line({ line }: { line: DiffLine }) {
  return <div class={`diff-line diff-${line.change}`}><span class="diff-sign">{SIGN[line.change]}</span><span>{line.text || ' '}</span></div>;
}

function Diff({ lines }: { lines: readonly DiffLine[] }) {
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  if (!hasChanges(lines)) return <Empty title="The files are equal" />;
  return (
    <div class="code" tabIndex={0} role="region" aria-label="Difference of the job files">
      {foldDiff(lines).map((row, i) => {
        if (row.kind === 'line') return <Line key={i} line={row.line} />;
        if (open.has(row.from)) return row.lines.map((line, k) => <Line key={`${i} ${k}`} line={line} />);
        return <button type="button" class="fold" key={i} onClick={() => setOpen(new Set([...open, row.from]))}>{count(row.lines.length, 'equal line')}</button>;
      })}
    </div>
  );
}

export function FileTab({ details, params }: { details: JobDetails; params: URLSearchParams }) {
  const { job } = details;
  const other = params.get('with') ?? '';
  const { data, error, reload } = useLoad((signal) => api.file(job.id, other || undefined, signal), [job.id, other]);
  const others = useLoad((signal) => api.jobs({ limit: OTHERS }, signal), []);
  const choices = (others.data?.jobs ?? []).filter((j) => j.id !== job.id);
  const unlisted = other !== '' && !choices.some((j) => j.id === other);
  return (
    <>
      <div class="controls">
        <label>Difference to
          <select value={other} onChange={(event) => setParams({ with: event.currentTarget.value })}>
            <option value="">no other run</option>
            {unlisted && <option value={other}>{other}</option>}
            {choices.map((j) => <option value={j.id} key={j.id}>{j.name} · {j.id} · {dateTime(j.created)}</option>)}
          </select>
        </label>
        {other && <a href={jobUrl(other)}>open {other}</a>}
        <span class="spacer" />
        {data && <button type="button" onClick={() => download(`${job.name}.yaml`, new Blob([data.text], { type: 'application/yaml' }))}>Download</button>}
      </div>
      {error && <ErrorBox message={error} retry={reload} />}
      {!data && !error && <Loading what="the job file" />}
      {data && other && data.diff && (
        <>
          <p class="legend-line muted"><span>− only in {other}</span><span>+ only in {job.id}</span></p>
          <Diff lines={data.diff} />
        </>
      )}
      {data && !other && <pre class="code file-text" tabIndex={0} aria-label="Job file">{data.text}</pre>}
      {data && !other && data.parameters.length > 0 && (
        <>
          <h2>Parameters</h2>
          <div class="table-wrap" tabIndex={0} role="region" aria-label="Parameters">
            <table><tbody>{data.parameters.map((p) => <tr key={p.name}><th scope="row" class="mono">{p.name}</th><td class="wrap mono">{p.value}</td></tr>)}</tbody></table>
          </div>
        </>
      )}
    </>
  );
}
