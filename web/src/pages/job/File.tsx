import type { JobDetails } from '../../api.ts';
export function FileTab(_: { details: JobDetails; params: URLSearchParams }) {
  return null;
}
