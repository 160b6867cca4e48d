// The lines of a log that the page holds: consecutive blocks, each with the cursors of its neighbours. When there are too
// many lines, whole blocks leave at the far end, and their cursors allow to read them again.
import type { LogLine, LogPage } from '../api.ts';

export interface Block {
  key: number;
  lines: readonly LogLine[];
  older: string | null;
  newer: string;
}

export interface LogWindow {
  blocks: readonly Block[];
  // The page holds the newest line that it has received; false after blocks left at that end.
  atEnd: boolean;
  nextKey: number;
}

export const MAX_LINES = 4000;
const FULL_BLOCK = 400;

export function emptyWindow(): LogWindow {
  return { blocks: [], atEnd: true, nextKey: 0 };
}

export const lineCount = (window: LogWindow): number => window.blocks.reduce((n, block) => n + block.lines.length, 0);

export const olderCursor = (window: LogWindow): string | null => window.blocks[0]?.older ?? null;

export const newerCursor = (window: LogWindow): string | null => window.blocks[window.blocks.length - 1]?.newer ?? null;

export function firstPage(page: LogPage): LogWindow {
  return { blocks: [{ key: 0, lines: page.lines, older: page.older, newer: page.newer }], atEnd: true, nextKey: 1 };
}

// Adds the page that was read from olderCursor().
export function prepend(window: LogWindow, page: LogPage, maxLines = MAX_LINES): LogWindow {
  const first = window.blocks[0];
  if (!first) return firstPage(page);
  if (page.lines.length === 0) {
    return { ...window, blocks: [{ ...first, older: page.older }, ...window.blocks.slice(1)] };
  }
  const blocks = [{ key: window.nextKey, lines: page.lines, older: page.older, newer: page.newer }, ...window.blocks];
  let left = blocks.length;
  let lines = lineCount(window) + page.lines.length;
  while (left > 1 && lines > maxLines) lines -= blocks[--left]!.lines.length;
  return { blocks: blocks.slice(0, left), atEnd: window.atEnd && left === blocks.length, nextKey: window.nextKey + 1 };
}

// Adds the page that was read from newerCursor(). `more` is whether newer lines may follow at once.
export function append(window: LogWindow, page: LogPage, more: boolean, maxLines = MAX_LINES): LogWindow {
  const last = window.blocks[window.blocks.length - 1];
  if (!last) return firstPage(page);
  const before = window.blocks.slice(0, -1);
  if (last.lines.length + page.lines.length <= FULL_BLOCK) {
    // A live log arrives in small pages: they join the last block.
    const lines = page.lines.length === 0 ? last.lines : [...last.lines, ...page.lines];
    return { ...window, blocks: [...before, { ...last, lines, newer: page.newer }], atEnd: !more };
  }
  const blocks = [...window.blocks, { key: window.nextKey, lines: page.lines, older: page.older, newer: page.newer }];
  let skip = 0;
  let lines = lineCount(window) + page.lines.length;
  while (skip < blocks.length - 1 && lines > maxLines) lines -= blocks[skip++]!.lines.length;
  return { blocks: blocks.slice(skip), atEnd: !more, nextKey: window.nextKey + 1 };
}

export interface Piece {
  text: string;
  match: boolean;
}

// Splits a line at the matches of a pattern. The server's expressions are POSIX extended ones; what this browser cannot
// compile is not marked.
export function marked(text: string, pattern: RegExp | null): Piece[] {
  if (!pattern) return [{ text, match: false }];
  const pieces: Piece[] = [];
  let from = 0;
  for (const found of text.matchAll(pattern)) {
    if (found[0] === '') continue;
    if (found.index > from) pieces.push({ text: text.slice(from, found.index), match: false });
    pieces.push({ text: found[0], match: true });
    from = found.index + found[0].length;
  }
  if (from < text.length || pieces.length === 0) pieces.push({ text: text.slice(from), match: false });
  return pieces;
}

export function compilePattern(grep: string): RegExp | null {
  if (grep === '') return null;
  try {
    return new RegExp(grep, 'g');
  } catch {
    return null;
  }
}
