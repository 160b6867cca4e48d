// The pages of the job list that the browser holds.
import type { JobPage, JobState, JobSummary } from '../api.ts';

export const PAGE = 100;
const MAX_PAGES = 12;

export interface JobList {
  total: number;
  states: Partial<Record<JobState, number>>;
  pages: ReadonlyMap<number, readonly JobSummary[]>;
}

export const emptyList: JobList = { total: 0, states: {}, pages: new Map() };

// Stores a page; those farthest from it leave when there are too many.
export function withPage(list: JobList, index: number, page: JobPage): JobList {
  const pages = new Map(list.pages);
  pages.set(index, page.jobs);
  const last = Math.ceil(page.total / PAGE);
  for (const key of pages.keys()) if (key >= last && key > 0) pages.delete(key);
  const far = [...pages.keys()].sort((a, b) => Math.abs(b - index) - Math.abs(a - index));
  for (const key of far.slice(0, Math.max(0, pages.size - MAX_PAGES))) pages.delete(key);
  return { total: page.total, states: page.states, pages };
}

export function jobAt(list: JobList, row: number): JobSummary | null {
  return list.pages.get(Math.floor(row / PAGE))?.[row % PAGE] ?? null;
}

// Replaces the jobs that changed. `stale` is whether the order, the number or the counts may differ now.
export function withChanges(
  list: JobList, changed: readonly JobSummary[], removed: readonly string[],
): { list: JobList; stale: boolean } {
  const byId = new Map(changed.map((job) => [job.id, job]));
  const gone = new Set(removed);
  let stale = false;
  let touched = false;
  const pages = new Map<number, readonly JobSummary[]>();
  for (const [key, jobs] of list.pages) {
    let copy: JobSummary[] | null = null;
    jobs.forEach((job, i) => {
      if (gone.has(job.id)) stale = true;
      const update = byId.get(job.id);
      if (!update) return;
      byId.delete(job.id);
      if (update.state !== job.state) stale = true;
      copy ??= [...jobs];
      copy[i] = { ...job, ...update };
    });
    touched ||= copy !== null;
    pages.set(key, copy ?? jobs);
  }
  // A job that is not held may be new, or match the filter only now.
  if (byId.size > 0 && list.pages.size > 0) stale = true;
  return { list: touched ? { ...list, pages } : list, stale };
}

export function pagesOf(firstRow: number, lastRow: number): number[] {
  const result: number[] = [];
  for (let page = Math.floor(Math.max(0, firstRow) / PAGE); page <= Math.floor(Math.max(0, lastRow) / PAGE); page++) result.push(page);
  return result;
}
