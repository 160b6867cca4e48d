// Colours of series. A job keeps its colour in every chart and across visits.
import { recall, remember, type Theme } from '../theme.ts';

// Distinguishable with colour vision deficiencies; at least 3:1 against the background of their theme.
const LIGHT = ['#0066b3', '#c24a00', '#00785a', '#a03b93', '#8a6100', '#0b7a8f', '#c0326f', '#5a5fc7', '#667000', '#5c6370'];
const DARK = ['#5ab0f2', '#ff9254', '#37c99a', '#df8fd6', '#e8bd3f', '#4fd0dc', '#ff86ad', '#a5a8ff', '#c3c94a', '#b4bac4'];
const DASHES: readonly (readonly number[])[] = [[], [6, 3], [2, 3]];

export const SLOTS = LIGHT.length;
const KEY = 'muster.colors';
const MAX_KEPT = 2000;

export interface SeriesStyle {
  color: string;
  dash: readonly number[];
}

export function styleOf(slot: number, theme: Theme): SeriesStyle {
  const colors = theme === 'dark' ? DARK : LIGHT;
  return { color: colors[slot % SLOTS]!, dash: DASHES[Math.floor(slot / SLOTS) % DASHES.length]! };
}

export function hash(text: string): number {
  let value = 2166136261;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 16777619);
  return value >>> 0;
}

// Gives each id a slot. Ids in `kept` keep theirs unless an earlier id has it; others get the first free one:
// the first colours differ most, and few jobs do not share one. With more ids than colours the slots go on, and their lines are dashed.
export function assignSlots(ids: readonly string[], kept: ReadonlyMap<string, number>): Map<string, number> {
  const result = new Map<string, number>();
  const used = new Set<number>();
  for (const id of ids) {
    const slot = kept.get(id);
    if (slot === undefined || used.has(slot)) continue;
    result.set(id, slot);
    used.add(slot);
  }
  for (const id of ids) {
    if (result.has(id)) continue;
    let slot = 0;
    while (used.has(slot)) slot++;
    result.set(id, slot);
    used.add(slot);
  }
  return result;
}

function load(): Map<string, number> {
  try {
    const entries = JSON.parse(recall(KEY) ?? '[]') as [string, number][];
    return new Map(entries.filter(([id, slot]) => typeof id === 'string' && Number.isInteger(slot) && slot >= 0));
  } catch {
    return new Map();
  }
}

// Returns the slots of jobs and stores those of new ones.
export function slotsOf(ids: readonly string[]): Map<string, number> {
  const kept = load();
  const slots = assignSlots(ids, kept);
  if (ids.some((id) => kept.get(id) !== slots.get(id))) {
    for (const [id, slot] of slots) {
      kept.delete(id);
      kept.set(id, slot);
    }
    remember(KEY, JSON.stringify([...kept].slice(-MAX_KEPT)));
  }
  return slots;
}
