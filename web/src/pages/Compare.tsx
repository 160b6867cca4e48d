export function ComparePage(_: { params: URLSearchParams }) {
  return null;
}
