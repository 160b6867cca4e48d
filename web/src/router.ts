// Routes of the one page, kept in the browser's history.
import { useEffect } from 'preact/hooks';
import { Store, useStore } from './store.ts';

export interface Route {
  path: string;
  params: URLSearchParams;
}

function current(): Route {
  return { path: location.pathname, params: new URLSearchParams(location.search) };
}

const route = new Store<Route>(current());

export function useRoute(): Route {
  return useStore(route);
}

export function go(url: string, replace = false): void {
  if (replace) history.replaceState(null, '', url);
  else history.pushState(null, '', url);
  route.set(current());
  if (!replace) window.scrollTo(0, 0);
}

// Replaces parameters of the current address; null removes one.
export function setParams(changes: Record<string, string | null>): void {
  const params = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') params.delete(name);
    else params.set(name, value);
  }
  const text = params.toString();
  go(location.pathname + (text ? `?${text}` : ''), true);
}

function followsInPage(event: MouseEvent): HTMLAnchorElement | null {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return null;
  const link = (event.target as Element | null)?.closest?.('a');
  if (!link || link.target || link.hasAttribute('download') || link.origin !== location.origin) return null;
  if (/^\/(api|assets|login|metrics)(\/|$)/.test(link.pathname) || link.getAttribute('href')?.startsWith('#')) return null;
  return link;
}

export function useRouter(): void {
  useEffect(() => {
    const onClick = (event: MouseEvent) => {
      const link = followsInPage(event);
      if (!link) return;
      event.preventDefault();
      go(link.pathname + link.search);
    };
    const onPop = () => route.set(current());
    document.addEventListener('click', onClick);
    window.addEventListener('popstate', onPop);
    return () => {
      document.removeEventListener('click', onClick);
      window.removeEventListener('popstate', onPop);
    };
  }, []);
}

export const jobUrl = (id: string, tab?: string): string =>
  `/jobs/${encodeURIComponent(id)}${tab && tab !== 'overview' ? `?tab=${tab}` : ''}`;

export const compareUrl = (ids: readonly string[]): string =>
  `/compare?${ids.map((id) => `job=${encodeURIComponent(id)}`).join('&')}`;
