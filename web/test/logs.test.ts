import { describe, expect, it } from 'vitest';
import type { LogLine, LogPage } from '../src/api.ts';
import { append, compilePattern, firstPage, lineCount, marked, newerCursor, olderCursor, prepend, type LogWindow } from '../src/logs/window.ts';

const line = (i: number): LogLine => ({ task: 'worker:0', attempt: 1, time: '2026-01-01T00:00:00Z', text: String(i) });
// The lines [from, to) of a log; a cursor is a line number.
const page = (from: number, to: number): LogPage => ({
  lines: Array.from({ length: to - from }, (_, i) => line(from + i)), older: from > 0 ? String(from) : null, newer: String(to),
});
const texts = (window: LogWindow): number[] => window.blocks.flatMap((block) => block.lines.map((l) => Number(l.text)));
const isConsecutive = (values: number[]): boolean => values.every((v, i) => i === 0 || v === values[i - 1]! + 1);

describe('log window', () => {
  it('grows at both ends without gaps or duplicates', () => {
    let window = firstPage(page(500, 1000));
    window = prepend(window, page(0, 500));
    window = append(window, page(1000, 1003), false);
    window = append(window, page(1003, 1003), false);
    expect(texts(window)).toEqual(Array.from({ length: 1003 }, (_, i) => i));
    expect([olderCursor(window), newerCursor(window)]).toEqual([null, '1003']);
  });
  it('drops old blocks while it follows, and can read them again', () => {
    let window = firstPage(page(0, 300));
    for (let at = 300; at < 30000; at += 300) window = append(window, page(at, at + 300), false, 2000);
    expect(lineCount(window)).toBeLessThanOrEqual(2000);
    const first = texts(window)[0]!;
    expect(olderCursor(window)).toBe(String(first));
    window = prepend(window, page(first - 300, first), 10000);
    expect(isConsecutive(texts(window))).toBe(true);
  });
  it('drops new blocks while it goes back, and reads on from there', () => {
    let window = firstPage(page(9500, 10000));
    for (let at = 9500; at > 0; at -= 500) window = prepend(window, page(at - 500, at), 2000);
    expect(window.atEnd).toBe(false);
    const cursor = Number(newerCursor(window));
    expect(texts(window).at(-1)).toBe(cursor - 1);
    window = append(window, page(cursor, cursor + 500), true, 2000);
    expect(isConsecutive(texts(window))).toBe(true);
    expect(window.atEnd).toBe(false);
  });
  it('moves the cursor over a page of a search that has no line', () => {
    let window = firstPage(page(100, 200));
    window = prepend(window, { lines: [], older: '50', newer: '100' });
    expect(olderCursor(window)).toBe('50');
  });
  it('stays bounded with lines that arrive one by one', () => {
    let window = firstPage(page(0, 1));
    for (let at = 1; at < 9000; at++) window = append(window, page(at, at + 1), false, 2000);
    expect(lineCount(window)).toBeLessThanOrEqual(2000);
    expect(texts(window).at(-1)).toBe(8999);
    expect(isConsecutive(texts(window))).toBe(true);
  });
});

describe('marks', () => {
  it('splits at matches and keeps all text', () => {
    expect(marked('a loss b loss', compilePattern('loss'))).toEqual([
      { text: 'a ', match: false }, { text: 'loss', match: true }, { text: ' b ', match: false }, { text: 'loss', match: true },
    ]);
    expect(marked('<b>', null)).toEqual([{ text: '<b>', match: false }]);
    expect(compilePattern('(')).toBe(null);
    expect(marked('abc', compilePattern('x*')).map((p) => p.text).join('')).toBe('abc');
  });
});
