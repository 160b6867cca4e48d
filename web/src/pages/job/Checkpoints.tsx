import type { JobDetails } from '../../api.ts';
export function CheckpointsTab(_: { details: JobDetails }) {
  return null;
}
