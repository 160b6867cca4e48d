// Tables of runs: columns, filters, order, CSV.

export type Value = string | number | null;

export interface Column {
  id: string;
  title: string;
  kind: 'run' | 'parameter' | 'metric';
}

export interface RunRow {
  id: string;
  values: Readonly<Record<string, Value>>;
}

type Test = (row: RunRow) => boolean;

const textOf = (value: Value | undefined): string => (value === null || value === undefined ? '' : String(value));

export function numberOf(value: Value | undefined): number | null {
  if (typeof value === 'number') return value;
  if (value === null || value === undefined || value.trim() === '') return null;
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
}

// Finds a column by its id, its title, or the last part of its path.
export function findColumn(columns: readonly Column[], name: string): Column | null {
  const wanted = name.toLowerCase();
  const last = (column: Column) => column.title.toLowerCase().split(/[./ ]/).pop();
  return columns.find((c) => c.id.toLowerCase() === wanted || c.title.toLowerCase() === wanted) ??
    columns.find((c) => last(c) === wanted) ?? null;
}

function compareTest(column: Column, operator: string, wanted: string): Test {
  const limit = numberOf(wanted);
  return (row) => {
    const value = row.values[column.id];
    const number = numberOf(value);
    if (operator === ':') return textOf(value).toLowerCase().includes(wanted.toLowerCase());
    if (operator === '=' || operator === '!=') {
      const equal = limit !== null && number !== null ? number === limit : textOf(value).toLowerCase() === wanted.toLowerCase();
      return equal === (operator === '=');
    }
    if (limit === null || number === null) return false;
    if (operator === '>') return number > limit;
    if (operator === '>=') return number >= limit;
    if (operator === '<') return number < limit;
    return number <= limit;
  };
}

export interface Filter {
  matches: Test;
  // Terms that name no column.
  unknown: string[];
}

// Compiles a filter: words that any column contains, and comparisons such as loss<0.1, state=failed, tags:sweep. All must hold.
export function compileFilter(text: string, columns: readonly Column[]): Filter {
  const tests: Test[] = [];
  const unknown: string[] = [];
  for (const term of text.match(/(?:[^\s"]+|"[^"]*")+/g) ?? []) {
    const match = /^([^<>=!:]+)(>=|<=|!=|[<>=:])(.*)$/.exec(term.replace(/"/g, ''));
    if (!match) {
      const word = term.replace(/"/g, '').toLowerCase();
      tests.push((row) => columns.some((c) => textOf(row.values[c.id]).toLowerCase().includes(word)));
      continue;
    }
    const column = findColumn(columns, match[1]!);
    if (column) tests.push(compareTest(column, match[2]!, match[3]!));
    else unknown.push(match[1]!);
  }
  return { matches: (row) => tests.every((test) => test(row)), unknown };
}

export interface Order {
  column: string;
  descending: boolean;
}

// Numbers sort as numbers, absent values last. The order of equal rows stays.
export function sortRows<T extends RunRow>(rows: readonly T[], order: Order | null): T[] {
  if (!order) return [...rows];
  const sign = order.descending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const x = a.values[order.column];
    const y = b.values[order.column];
    const absentX = x === null || x === undefined || x === '';
    const absentY = y === null || y === undefined || y === '';
    if (absentX || absentY) return Number(absentX) - Number(absentY);
    const m = numberOf(x);
    const n = numberOf(y);
    if (m !== null && n !== null) return sign * (m - n);
    return sign * String(x).localeCompare(String(y), 'en', { numeric: true });
  });
}

// Returns the columns in which the rows differ.
export function differing(columns: readonly Column[], rows: readonly RunRow[]): Column[] {
  return columns.filter((column) => new Set(rows.map((row) => textOf(row.values[column.id]))).size > 1);
}

// A text that a spreadsheet would take for a formula gets an apostrophe.
export function csvCell(value: Value | undefined): string {
  let text = textOf(value);
  if (typeof value === 'string' && /^[=+\-@\t\r]/.test(text) && numberOf(value) === null) text = `'${text}`;
  return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

export function toCsv(head: readonly string[], rows: Iterable<readonly (Value | undefined)[]>): string {
  const lines = [head.map(csvCell).join(',')];
  for (const row of rows) lines.push(row.map(csvCell).join(','));
  return `${lines.join('\r\n')}\r\n`;
}
