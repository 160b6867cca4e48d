import type { DiffLine } from '../../api.ts';

export type DiffRow = { kind: 'line'; line: DiffLine } | { kind: 'fold'; from: number; lines: DiffLine[] };

// Folds equal lines that are more than `context` lines away from a change.
export function foldDiff(lines: readonly DiffLine[], context = 3): DiffRow[] {
  const near = new Array<boolean>(lines.length).fill(false);
  lines.forEach((line, i) => {
    if (line.change === 'same') return;
    for (let k = Math.max(0, i - context); k <= Math.min(lines.length - 1, i + context); k++) near[k] = true;
  });
  const rows: DiffRow[] = [];
  for (let i = 0; i < lines.length;) {
    let end = i;
    while (end < lines.length && !near[end]) end++;
    // A fold of one line takes as much space as the line.
    if (end - i > 1) rows.push({ kind: 'fold', from: i, lines: lines.slice(i, end) });
    else if (end - i === 1) rows.push({ kind: 'line', line: lines[i]! });
    if (end < lines.length) rows.push({ kind: 'line', line: lines[end]! });
    i = end + 1;
  }
  return rows;
}

export const hasChanges = (lines: readonly DiffLine[]): boolean => lines.some((line) => line.change !== 'same');
