import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { isAbort, messageOf } from '../api.ts';
import { Store, useStore } from '../store.ts';

const now = new Store(Date.now());
setInterval(() => {
  if (!document.hidden) now.set(Date.now());
}, 1000);
document.addEventListener('visibilitychange', () => now.set(Date.now()));

// The time in milliseconds, every second.
export function useNow(): number {
  return useStore(now);
}

export interface Loaded<T> {
  data: T | null;
  error: string | null;
  loading: boolean;
  reload: () => void;
  set: (data: T) => void;
}

// Loads data, again when a dependency changes. Old data stays while new data loads after reload(), not after a change.
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, dependencies: readonly unknown[]): Loaded<T> {
  const [state, setState] = useState<{ data: T | null; error: string | null; loading: boolean }>({ data: null, error: null, loading: true });
  const [round, setRound] = useState(0);
  const key = JSON.stringify(dependencies);
  const previous = useRef(key);
  useEffect(() => {
    const changed = previous.current !== key;
    previous.current = key;
    const abort = new AbortController();
    setState((s) => ({ data: changed ? null : s.data, error: null, loading: true }));
    load(abort.signal).then(
      (data) => setState({ data, error: null, loading: false }),
      (error: unknown) => {
        if (!isAbort(error)) setState((s) => ({ ...s, error: messageOf(error), loading: false }));
      },
    );
    return () => abort.abort();
  }, [key, round]);
  const reload = useCallback(() => setRound((n) => n + 1), []);
  const set = useCallback((data: T) => setState({ data, error: null, loading: false }), []);
  return { ...state, reload, set };
}

export function useDebounced<T>(value: T, ms: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(() => value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Muster`;
  }, [title]);
}
