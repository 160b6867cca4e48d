export function GraphTab(_: { id: string }) {
  return null;
}
