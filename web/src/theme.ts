import { Store } from './store.ts';

export type Theme = 'light' | 'dark';
type Choice = Theme | 'system';

const KEY = 'muster.theme';
const dark = window.matchMedia('(prefers-color-scheme: dark)');

export function remember(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Storage may be full or forbidden; the choice then lasts until the page is left.
  }
}

export function recall(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function stored(): Choice {
  const value = recall(KEY);
  return value === 'light' || value === 'dark' ? value : 'system';
}

const resolve = (choice: Choice): Theme => (choice === 'system' ? (dark.matches ? 'dark' : 'light') : choice);

let choice = stored();
export const theme = new Store<Theme>(resolve(choice));

function apply(): void {
  document.documentElement.dataset.theme = resolve(choice);
  theme.set(resolve(choice));
}

export function startTheme(): void {
  dark.addEventListener('change', apply);
  apply();
}

export function toggleTheme(): void {
  choice = theme.get() === 'dark' ? 'light' : 'dark';
  remember(KEY, choice);
  apply();
}
