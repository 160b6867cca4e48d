// Groups of runs whose curves are averaged.
import type { Comparison } from '../api.ts';

export interface RunGroup {
  key: string;
  label: string;
  jobs: string[];
}

export interface GroupChoice {
  id: string;
  title: string;
}

const shortName = (path: string): string => path.split('.').pop() ?? path;

// What runs can be grouped by: their name, a parameter that differs, or all parameters that differ except one of them, such
// as the seed.
export function groupChoices(comparison: Comparison): GroupChoice[] {
  const differing = comparison.parameters.filter((p) => p.differs).map((p) => p.name);
  const seeds = differing.filter((name) => /seed$/i.test(name));
  const paths = /^(name|model_dir)$/;
  return [
    { id: 'none', title: 'no groups' },
    ...seeds.map((seed) => ({ id: `but:${seed}`, title: `all but ${shortName(seed)}` })),
    { id: 'name', title: 'name' },
    ...differing.filter((name) => !paths.test(name)).map((name) => ({ id: `by:${name}`, title: name })),
  ];
}

export function groupRuns(comparison: Comparison, choice: string): RunGroup[] | null {
  if (choice === 'none' || choice === '') return null;
  const names = parametersOf(comparison, choice);
  const groups = new Map<string, RunGroup>();
  comparison.jobs.forEach((job, i) => {
    const values = names.map((p) => [p.name, p.values[i] ?? null] as const);
    const key = JSON.stringify(values);
    const label = values.map(([name, value]) => (name === 'name' ? String(value) : `${shortName(name)}=${value ?? '–'}`)).join(' ') || 'all runs';
    const group = groups.get(key) ?? { key, label, jobs: [] };
    group.jobs.push(job);
    groups.set(key, group);
  });
  return [...groups.values()];
}

function parametersOf(comparison: Comparison, choice: string): Comparison['parameters'] {
  if (choice === 'name') return comparison.parameters.filter((p) => p.name === 'name');
  if (choice.startsWith('by:')) return comparison.parameters.filter((p) => p.name === choice.slice(3));
  const except = choice.slice('but:'.length);
  // The name and the model dir are mostly different for every run and describe no setting.
  return comparison.parameters.filter((p) => p.differs && p.name !== except && p.name !== 'model_dir' && p.name !== 'name');
}
