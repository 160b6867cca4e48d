import { useState } from 'preact/hooks';
import { api, messageOf, type JobDetails, type JobEvent } from '../../api.ts';
import { dateTime } from '../../format.ts';
import { Empty, ErrorBox } from '../../parts/parts.tsx';

const MAX_EVENTS = 5000;

// Joins events by sequence number; both lists are in order.
export function mergeEvents(older: readonly JobEvent[], newer: readonly JobEvent[]): JobEvent[] {
  const last = older[older.length - 1]?.sequence ?? -1;
  return [...older, ...newer.filter((event) => event.sequence > last)];
}

export function EventsTab({ details }: { details: JobDetails }) {
  const [older, setOlder] = useState<JobEvent[]>([]);
  const [filter, setFilter] = useState('');
  const [error, setError] = useState<string | null>(null);
  const events = mergeEvents(older, details.events);
  const more = older.length === 0 && details.events.length >= 200;
  const loadAll = async () => {
    try {
      let all: JobEvent[] = [];
      for (;;) {
        const { events: page } = await api.events(details.job.id, all[all.length - 1]?.sequence ?? 0);
        all = [...all, ...page];
        if (page.length < 1000 || all.length >= MAX_EVENTS) break;
      }
      setOlder(all);
    } catch (problem) {
      setError(messageOf(problem));
    }
  };
  const text = filter.toLowerCase();
  const shown = events.filter((e) => `${e.kind} ${e.task ?? ''} ${e.message}`.toLowerCase().includes(text)).reverse();
  if (events.length === 0) return <Empty title="No events yet" />;
  return (
    <>
      <div class="controls">
        <input type="search" data-search class="grow" placeholder="Filter events" aria-label="Filter events" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        {more && <button type="button" onClick={() => void loadAll()}>Load older events</button>}
      </div>
      {error && <ErrorBox message={error} />}
      <div class="table-wrap" tabIndex={0} role="region" aria-label="Events, newest first">
        <table>
          <thead><tr><th>Time</th><th>Kind</th><th>Task</th><th>Message</th></tr></thead>
          <tbody>
            {shown.map((event) => (
              <tr key={event.sequence}>
                <td class="num muted left">{dateTime(event.time)}</td><td>{event.kind}</td><td class="mono">{event.task ?? '–'}</td><td class="wrap pre-line">{event.message}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {shown.length === 0 && <Empty title="No event matches" />}
    </>
  );
}
