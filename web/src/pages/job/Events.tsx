import type { JobDetails } from '../../api.ts';
export function EventsTab(_: { details: JobDetails }) {
  return null;
}
