export function ResourcesTab(_: { id: string; running: boolean }) {
  return null;
}
