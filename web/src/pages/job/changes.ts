import type { Parameter } from '../../api.ts';

// Returns the changes as arguments of `--set`: only values that differ from the file.
export function changesOf(parameters: readonly Parameter[], values: Readonly<Record<string, string>>): string[] {
  return parameters
    .filter(({ name, value }) => values[name] !== undefined && values[name] !== value)
    .map(({ name }) => `${name}=${values[name]}`);
}
