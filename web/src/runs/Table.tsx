import type { ComponentChildren } from 'preact';
import { number } from '../format.ts';
import type { Column, Order, RunRow, Value } from './table.ts';

export function cellText(value: Value | undefined): string {
  if (value === null || value === undefined) return '–';
  return typeof value === 'number' ? number(value) : value;
}

// A table of runs whose heads sort.
export function RunTable<T extends RunRow>({ label, rows, columns, order, onOrder, lead, leadHead, onHover }: {
  label: string; rows: readonly T[]; columns: readonly Column[]; order: Order | null; onOrder: (order: Order | null) => void;
  lead: (row: T) => ComponentChildren; leadHead: ComponentChildren; onHover?: (id: string | null) => void;
}) {
  const next = (id: string): Order | null => (order?.column !== id ? { column: id, descending: false } : order.descending ? null : { column: id, descending: true });
  const sorted = (id: string) => (order?.column !== id ? undefined : order.descending ? 'descending' : 'ascending');
  return (
    <div class="table-wrap runs-table" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {leadHead}
            {columns.map((column) => (
              <th key={column.id} aria-sort={sorted(column.id)} class={column.kind === 'metric' ? 'num' : ''}>
                <button type="button" class="sort" onClick={() => onOrder(next(column.id))} title={`Sort by ${column.title}`}>
                  {column.title}<span aria-hidden="true">{sorted(column.id) === 'ascending' ? ' ↑' : sorted(column.id) === 'descending' ? ' ↓' : ''}</span>
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id} onMouseEnter={() => onHover?.(row.id)} onMouseLeave={() => onHover?.(null)}>
              {lead(row)}
              {columns.map((column) => (
                <td key={column.id} class={column.kind === 'metric' ? 'num' : column.kind === 'parameter' ? 'mono cell-cut' : 'cell-cut'} title={String(row.values[column.id] ?? '')}>
                  {cellText(row.values[column.id])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
