import { useState } from 'preact/hooks';
import { api, type JobSummary } from '../../api.ts';
import { count } from '../../format.ts';
import { useLoad } from '../../parts/hooks.ts';
import { Dialog, ErrorBox, Loading } from '../../parts/parts.tsx';
import { go, jobUrl } from '../../router.ts';
import { useAction } from './Actions.tsx';
import { changesOf } from './changes.ts';

// A form of the parameters in the job file; the changed ones become arguments of --set.
export function RunAgain({ job, onClose }: { job: JobSummary; onClose: () => void }) {
  const { data, error: loadError, reload } = useLoad((signal) => api.file(job.id, undefined, signal), [job.id]);
  const [values, setValues] = useState<Record<string, string>>({});
  const [name, setName] = useState('');
  const [filter, setFilter] = useState('');
  const [file, setFile] = useState<string | null>(null);
  const { busy, error, run } = useAction();
  const changes = data ? changesOf(data.parameters, values) : [];
  const start = () => run(async () => {
    const body: { file?: string; set?: string[]; name?: string } = {};
    if (file !== null) body.file = file;
    else if (changes.length > 0) body.set = changes;
    if (name.trim()) body.name = name.trim();
    go(jobUrl((await api.run(job.id, body)).id));
  });
  const shown = data?.parameters.filter((p) => p.name.includes(filter)) ?? [];
  return (
    <Dialog title={`Change ${job.name} and run again`} onClose={onClose} wide>
      {loadError && <ErrorBox message={loadError} retry={reload} />}
      {!data && !loadError && <Loading what="the job file" />}
      {data && (
        <form class="dialog-form" onSubmit={(event) => { event.preventDefault(); start(); }}>
          <label class="field"><span>Name of the new job</span>
            <input type="text" maxLength={100} placeholder={job.name} value={name} onInput={(event) => setName(event.currentTarget.value)} /></label>
          {file === null ? (
            <>
              <div class="controls">
                <input type="search" class="grow" aria-label="Filter parameters" placeholder="Filter parameters" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
                <button type="button" onClick={() => setFile(data.text)}>Edit the file</button>
              </div>
              <div class="parameters" tabIndex={0} role="region" aria-label="Parameters">
                {shown.map((p) => (
                  <label key={p.name} class={changes.some((c) => c.startsWith(`${p.name}=`)) ? 'changed' : ''}>
                    <span class="mono">{p.name}</span>
                    <input type="text" class="mono" value={values[p.name] ?? p.value} onInput={(event) => setValues({ ...values, [p.name]: event.currentTarget.value })} />
                  </label>
                ))}
                {shown.length === 0 && <p class="muted">No parameter matches</p>}
              </div>
            </>
          ) : (
            <>
              <label class="field"><span>Job file</span><textarea rows={18} spellcheck={false} value={file} onInput={(event) => setFile(event.currentTarget.value)} /></label>
              <button type="button" onClick={() => setFile(null)}>Back to the parameters</button>
            </>
          )}
          {error && <ErrorBox message={error} />}
          <div class="dialog-actions">
            <span class="muted">{file === null ? (changes.length === 0 ? 'no changes' : <>{count(changes.length, 'change')}: <code>{changes.join(' ')}</code></>) : 'runs the edited file'}</span>
            <span class="spacer" />
            <button type="button" onClick={onClose}>Cancel</button>
            <button class="primary" disabled={busy}>{busy ? 'Starting…' : 'Run'}</button>
          </div>
        </form>
      )}
    </Dialog>
  );
}
