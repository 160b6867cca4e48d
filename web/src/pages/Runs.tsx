export function RunsPage(_: { params: URLSearchParams }) {
  return null;
}
