// Keys that work on every page.
import { useEffect, useRef } from 'preact/hooks';

export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target.tagName === 'TEXTAREA' || target.tagName === 'SELECT' ||
    (target instanceof HTMLInputElement && !['checkbox', 'radio', 'range', 'button'].includes(target.type));
}

export type KeyMap = Record<string, (event: KeyboardEvent) => void>;

// Calls the function of a key unless the user types or a dialog is open.
export function useKeys(map: KeyMap): void {
  const latest = useRef(map);
  latest.current = map;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (isTyping(event.target)) {
        if (event.key === 'Escape') (event.target as HTMLElement).blur();
        return;
      }
      if (document.querySelector('dialog[open]')) return;
      const handler = latest.current[event.key];
      if (!handler) return;
      event.preventDefault();
      handler(event);
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);
}

export function focusSearch(): void {
  const field = document.querySelector<HTMLInputElement>('input[data-search]');
  field?.focus();
  field?.select();
}

// Moves the focus among the elements of a list that can take it.
export function moveFocus(selector: string, step: number): void {
  const items = [...document.querySelectorAll<HTMLElement>(selector)];
  if (items.length === 0) return;
  const i = items.indexOf(document.activeElement as HTMLElement);
  const next = items[i < 0 ? (step > 0 ? 0 : items.length - 1) : Math.min(items.length - 1, Math.max(0, i + step))]!;
  next.focus();
  next.scrollIntoView({ block: 'nearest' });
}
