import { api } from '../../api.ts';
import { number } from '../../format.ts';
import { useLoad } from '../../parts/hooks.ts';
import { Dialog, ErrorBox } from '../../parts/parts.tsx';

// Lists the values of a result, also of nested objects, by path.
export function flatten(value: unknown, path = ''): [string, string][] {
  if (value !== null && typeof value === 'object' && !Array.isArray(value)) {
    return Object.entries(value).flatMap(([name, inner]) => flatten(inner, path ? `${path}.${name}` : name));
  }
  if (typeof value === 'number') return [[path, number(value, 5)]];
  return [[path, typeof value === 'string' ? value : JSON.stringify(value)]];
}

// Evaluates a checkpoint and shows the metrics.
export function EvaluationResult({ id, step, onClose }: { id: string; step?: number; onClose: () => void }) {
  const { data, error, loading } = useLoad(() => api.evaluate(id, step), [id, step]);
  return (
    <Dialog title={step === undefined ? 'Evaluation of the newest checkpoint' : `Evaluation of step ${step}`} onClose={onClose}>
      {loading && <p role="status" class="muted">Evaluating… this may take a while; the result is also kept if you leave.</p>}
      {error && <ErrorBox message={error} />}
      {data && (
        <table>
          <tbody>{flatten(data).map(([name, value]) => <tr key={name}><th scope="row">{name}</th><td class="num">{value}</td></tr>)}</tbody>
        </table>
      )}
    </Dialog>
  );
}
