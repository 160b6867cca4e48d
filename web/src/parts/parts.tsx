// Small parts that several pages use.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { JobState, Progress as ProgressOf } from '../api.ts';
import { integer, percent } from '../format.ts';

const ICONS: Record<string, string> = {
  Pending: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM8 5v3.2l2 1.3',
  Starting: 'M8 2.5a5.5 5.5 0 1 1-5.2 3.7M2.5 2.8v3.6h3.6',
  Running: 'M5.5 3.5 12 8l-6.5 4.5z',
  Restarting: 'M13 8a5 5 0 1 1-1.6-3.7M13 2.5v3h-3',
  Suspended: 'M5.5 3.5v9M10.5 3.5v9',
  Succeeded: 'M3 8.5 6.5 12 13 4.5',
  Failed: 'M4 4l8 8M12 4l-8 8',
  Stopped: 'M4.5 4.5h7v7h-7z',
  Unreachable: 'M8 3.5v5M8 11.8v.4M2 13.5 8 2.5l6 11z',
};

const TONES: Record<string, string> = {
  Pending: 'wait', Starting: 'wait', Running: 'run', Restarting: 'warn', Suspended: 'wait',
  Succeeded: 'good', Failed: 'bad', Stopped: 'idle', Unreachable: 'warn',
};

export const toneOf = (state: string): string => TONES[state] ?? 'idle';

export function State({ state }: { state: JobState | string }) {
  const filled = state === 'Running' || state === 'Stopped';
  return (
    <span class={`state tone-${toneOf(state)}`}>
      <svg viewBox="0 0 16 16" class={filled ? 'icon icon-fill' : 'icon'} aria-hidden="true"><path d={ICONS[state] ?? ICONS.Pending} /></svg>
      {state}
    </span>
  );
}

export function Icon({ path }: { path: string }) {
  return <svg viewBox="0 0 16 16" class="icon" aria-hidden="true"><path d={path} /></svg>;
}

export function ProgressBar({ progress, tone, label }: { progress: ProgressOf | null; tone: string; label: string }) {
  if (!progress) return <span class="muted">–</span>;
  const { step, steps } = progress;
  if (steps === null || steps <= 0) return <span class="num">{integer(step)}</span>;
  const share = Math.min(1, step / steps);
  return (
    <span class="progress">
      <span class="bar" role="progressbar" aria-label={label} aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.floor(share * 100)}>
        <span class={`bar-fill tone-${tone}`} style={{ width: `${share * 100}%` }} />
      </span>
      <span class="num">{percent(share)}</span>
    </span>
  );
}

export function ErrorBox({ message, retry }: { message: string; retry?: () => void }) {
  return (
    <div class="notice notice-bad" role="alert">
      <span class="pre-line">{message}</span>
      {retry && <button type="button" onClick={retry}>Try again</button>}
    </div>
  );
}

export function Loading({ what }: { what: string }) {
  return <p class="loading muted" role="status">Loading {what}…</p>;
}

// Says that there is nothing; `page` if it is all of the page.
export function Empty({ title, children, page }: { title: string; children?: ComponentChildren; page?: boolean }) {
  return (
    <div class="empty">
      {page ? <h1 class="empty-title">{title}</h1> : <p class="empty-title">{title}</p>}
      {children}
    </div>
  );
}

export function Tags({ tags }: { tags: readonly string[] }) {
  return <>{tags.map((tag) => <span class="tag" key={tag}>{tag}</span>)}</>;
}

// A modal dialog; Escape and a click beside it close it.
export function Dialog({ title, onClose, children, wide }: { title: string; onClose: () => void; children: ComponentChildren; wide?: boolean }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog
      ref={dialog} class={wide ? 'wide' : ''} aria-label={title}
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && dialog.current?.close()}
    >
      <div class="dialog-body">
        <header>
          <h2>{title}</h2>
          <button type="button" class="quiet" aria-label="Close" onClick={() => dialog.current?.close()}><Icon path="M4 4l8 8M12 4l-8 8" /></button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

export interface TabItem {
  id: string;
  label: string;
  count?: number | string;
}

export function Tabs({ tabs, current, onSelect, label }: { tabs: readonly TabItem[]; current: string; onSelect: (id: string) => void; label: string }) {
  const onKey = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const i = tabs.findIndex((tab) => tab.id === current);
    const next = tabs[(i + step + tabs.length) % tabs.length]!;
    onSelect(next.id);
    requestAnimationFrame(() => document.getElementById(`tab-${next.id}`)?.focus());
  };
  return (
    <div class="tabs" role="tablist" aria-label={label} onKeyDown={onKey}>
      {tabs.map((tab) => (
        <button
          type="button" role="tab" key={tab.id} id={`tab-${tab.id}`} aria-selected={tab.id === current} aria-controls="tabpanel"
          tabIndex={tab.id === current ? 0 : -1} onClick={() => onSelect(tab.id)}
        >
          {tab.label}{tab.count !== undefined && <span class="tab-count">{tab.count}</span>}
        </button>
      ))}
    </div>
  );
}

export function download(name: string, content: Blob): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
