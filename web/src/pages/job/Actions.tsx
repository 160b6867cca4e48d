import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { api, messageOf, type JobDetails, type Notes } from '../../api.ts';
import { Dialog, ErrorBox } from '../../parts/parts.tsx';
import { go, jobUrl } from '../../router.ts';
import { EvaluationResult } from './Evaluation.tsx';
import { RunAgain } from './RunAgain.tsx';

// Runs an action once at a time and keeps its error.
export function useAction(): { busy: boolean; error: string | null; run: (work: () => Promise<void>) => void } {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const run = (work: () => Promise<void>) => {
    if (busy) return;
    setBusy(true);
    setError(null);
    work().catch((problem: unknown) => setError(messageOf(problem))).finally(() => setBusy(false));
  };
  return { busy, error, run };
}

function Confirm({ title, children, onClose, actions }: {
  title: string; children: ComponentChildren; onClose: () => void; actions: { label: string; tone: string; work: () => Promise<void> }[];
}) {
  const { busy, error, run } = useAction();
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      {error && <ErrorBox message={error} />}
      <div class="dialog-actions">
        <button type="button" onClick={onClose}>Cancel</button>
        {actions.map(({ label, tone, work }) => (
          <button type="button" key={label} class={tone} disabled={busy} onClick={() => run(work)}>{label}</button>
        ))}
      </div>
    </Dialog>
  );
}

export function NotesDialog({ id, notes, onClose, onSaved }: { id: string; notes: Notes; onClose: () => void; onSaved: (notes: Notes) => void }) {
  const [note, setNote] = useState(notes.note);
  const [tags, setTags] = useState(notes.tags.join(', '));
  const [hidden, setHidden] = useState(notes.hidden);
  const { busy, error, run } = useAction();
  const save = () => run(async () => {
    const list = [...new Set(tags.split(',').map((tag) => tag.trim()).filter(Boolean))];
    onSaved(await api.notes(id, { note, tags: list, hidden }));
    onClose();
  });
  return (
    <Dialog title="Notes and tags" onClose={onClose}>
      <form onSubmit={(event) => { event.preventDefault(); save(); }} class="dialog-form">
        <label class="field"><span>Tags, separated by commas</span>
          <input type="text" value={tags} onInput={(event) => setTags(event.currentTarget.value)} /></label>
        <label class="field"><span>Note</span>
          <textarea rows={6} maxLength={10000} value={note} onInput={(event) => setNote(event.currentTarget.value)} /></label>
        <label class="check"><input type="checkbox" checked={hidden} onChange={(event) => setHidden(event.currentTarget.checked)} /> leave out of the list of runs</label>
        {error && <ErrorBox message={error} />}
        <div class="dialog-actions"><button type="button" onClick={onClose}>Cancel</button><button class="primary" disabled={busy}>Save</button></div>
      </form>
    </Dialog>
  );
}

type Open = 'stop' | 'resume' | 'evaluate' | 'run' | 'remove' | 'notes' | null;

export function Actions({ details, onChange, onNotes }: { details: JobDetails; onChange: () => void; onNotes: (notes: Notes) => void }) {
  const [open, setOpen] = useState<Open>(null);
  const { job, actions } = details;
  const close = () => setOpen(null);
  const stop = async (immediately: boolean) => {
    await api.stop(job.id, immediately);
    close();
    onChange();
  };
  const resume = async () => go(jobUrl((await api.resume(job.id)).id));
  const remove = async () => {
    await api.remove(job.id);
    go('/');
  };
  return (
    <div class="actions">
      {actions.includes('stop') && <button type="button" class="danger" onClick={() => setOpen('stop')}>Stop…</button>}
      {actions.includes('resume') && <button type="button" onClick={() => setOpen('resume')}>Resume…</button>}
      {actions.includes('evaluate') && <button type="button" onClick={() => setOpen('evaluate')}>Evaluate</button>}
      {actions.includes('run') && <button type="button" onClick={() => setOpen('run')}>Change and run again…</button>}
      <button type="button" onClick={() => setOpen('notes')}>Notes…</button>
      {actions.includes('remove') && <button type="button" class="danger" onClick={() => setOpen('remove')}>Remove…</button>}
      {open === 'stop' && (
        <Confirm title={`Stop ${job.name}?`} onClose={close} actions={[
          { label: 'Kill now', tone: 'danger', work: () => stop(true) }, { label: 'Stop', tone: 'primary', work: () => stop(false) },
        ]}>
          <p><strong>Stop</strong> lets the tasks save a checkpoint within their grace period. <strong>Kill now</strong> skips it.</p>
        </Confirm>
      )}
      {open === 'resume' && (
        <Confirm title={`Resume ${job.name}?`} onClose={close} actions={[{ label: 'Resume', tone: 'primary', work: resume }]}>
          <p>A new run starts from the newest checkpoint{job.model_dir && <> in <code>{job.model_dir}</code></>}.</p>
        </Confirm>
      )}
      {open === 'remove' && (
        <Confirm title={`Remove ${job.name}?`} onClose={close} actions={[{ label: 'Remove', tone: 'danger', work: remove }]}>
          <p>Its record, logs and samples on this machine are deleted. Its model dir stays.</p>
        </Confirm>
      )}
      {open === 'evaluate' && <EvaluationResult id={job.id} onClose={close} />}
      {open === 'run' && <RunAgain job={job} onClose={close} />}
      {open === 'notes' && <NotesDialog id={job.id} notes={job.notes} onClose={close} onSaved={onNotes} />}
    </div>
  );
}
