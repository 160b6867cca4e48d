import { useEffect, useState } from 'preact/hooks';
import { getSession, setSessionEndHandler, type Session } from './api.ts';
import { focusSearch, useKeys } from './keys.ts';
import { ComparePage } from './pages/Compare.tsx';
import { JobPage } from './pages/Job.tsx';
import { JobsPage } from './pages/Jobs.tsx';
import { RunsPage } from './pages/Runs.tsx';
import { Dialog, Empty, Icon } from './parts/parts.tsx';
import { go, useRoute, useRouter, type Route } from './router.ts';
import { Store, useStore } from './store.ts';
import { connection } from './stream.ts';
import { theme, toggleTheme } from './theme.ts';

const sessionEnded = new Store(false);
setSessionEndHandler(() => sessionEnded.set(true));

const CONNECTION_TEXT = { connecting: 'connecting', live: 'live', lost: 'reconnecting' } as const;
const SUN = 'M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M3 13l1-1M12 4l1-1';
const MOON = 'M13 9.8A5.5 5.5 0 0 1 6.2 3 5.5 5.5 0 1 0 13 9.8z';

function Header({ path, onHelp }: { path: string; onHelp: () => void }) {
  const state = useStore(connection);
  const current = useStore(theme);
  const link = (href: string, text: string, active: boolean) => (
    <a href={href} aria-current={active ? 'page' : undefined}>{text}</a>
  );
  return (
    <header class="top">
      <a class="skip" href="#main">Skip to content</a>
      <a class="brand" href="/"><img src={new URL('./icon.svg', import.meta.url).href} alt="" width="18" height="18" />Muster</a>
      <nav aria-label="Pages">
        {link('/', 'Jobs', path === '/' || path.startsWith('/jobs'))}
        {link('/runs', 'Runs', path === '/runs' || path === '/compare')}
      </nav>
      <span class="spacer" />
      <span class={`connection connection-${state}`} role="status"><span class="dot" aria-hidden="true" />{CONNECTION_TEXT[state]}</span>
      <button type="button" class="quiet" onClick={toggleTheme} aria-label={current === 'dark' ? 'Use the light theme' : 'Use the dark theme'}>
        <Icon path={current === 'dark' ? SUN : MOON} />
      </button>
      <button type="button" class="quiet" onClick={onHelp} aria-label="Keyboard help">?</button>
    </header>
  );
}

const KEYS: readonly [string, string][] = [
  ['j / k or ↓ / ↑', 'next / previous row'],
  ['Enter', 'open the job'],
  ['x', 'select the row for comparison'],
  ['c', 'compare the selected jobs'],
  ['/', 'search'],
  ['g j / g r', 'jobs / runs'],
  ['1 … 8', 'tabs of a job'],
  ['← / →', 'in a chart: move the cursor; between tabs'],
  ['t', 'dark or light'],
  ['Esc', 'leave a field, close, reset zoom'],
  ['?', 'this help'],
];

function Help({ onClose, version }: { onClose: () => void; version: string | null }) {
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      <dl class="keys">
        {KEYS.map(([key, text]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{text}</dd></div>)}
      </dl>
      {version && <p class="muted">Muster {version}</p>}
    </Dialog>
  );
}

function SessionEnded() {
  return (
    <Empty page title="This page needs a new link">
      <p>The session of this browser ended. In a terminal, run:</p>
      <pre class="command">muster dashboard</pre>
    </Empty>
  );
}

function NotFound({ path }: { path: string }) {
  return <Empty page title="No such page"><p>There is no page at <code>{path}</code>. <a href="/">All jobs</a></p></Empty>;
}

function Page({ route, session }: { route: Route; session: Session | null }) {
  const { path, params } = route;
  if (path === '/' || path === '/index.html') return <JobsPage params={params} platforms={session?.platforms ?? []} />;
  if (path === '/runs') return <RunsPage params={params} />;
  if (path === '/compare') return <ComparePage params={params} />;
  const job = /^\/jobs\/([^/]+)\/?$/.exec(path);
  if (job) return <JobPage key={job[1]} id={decodeURIComponent(job[1]!)} params={params} />;
  return <NotFound path={path} />;
}

// Keys such as `g r` are two presses within a second.
function usePrefixKey(): { start: () => void; take: () => boolean } {
  const [state] = useState({ time: 0 });
  return {
    start: () => (state.time = Date.now()),
    take: () => {
      const recent = Date.now() - state.time < 1000;
      state.time = 0;
      return recent;
    },
  };
}

export function App() {
  useRouter();
  const route = useRoute();
  const ended = useStore(sessionEnded);
  const [help, setHelp] = useState(false);
  const [session, setSession] = useState<Session | null>(null);
  useEffect(() => {
    getSession().then(setSession, () => {});
  }, []);
  const prefix = usePrefixKey();
  useKeys({
    '?': () => setHelp(true),
    '/': focusSearch,
    t: toggleTheme,
    g: prefix.start,
  });
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if ((event.key === 'j' || event.key === 'r') && prefix.take()) {
        event.preventDefault();
        event.stopPropagation();
        go(event.key === 'j' ? '/' : '/runs');
      }
    };
    document.addEventListener('keydown', onKey, true);
    return () => document.removeEventListener('keydown', onKey, true);
  }, []);
  return (
    <>
      <Header path={route.path} onHelp={() => setHelp(true)} />
      <main id="main" tabIndex={-1}>{ended ? <SessionEnded /> : <Page route={route} session={session} />}</main>
      {help && <Help onClose={() => setHelp(false)} version={session?.version ?? null} />}
    </>
  );
}
