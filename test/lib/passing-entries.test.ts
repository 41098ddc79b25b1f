import { expect, test } from 'vitest';
import { PassingEntries } from '../../src/lib/passing-entries.js';

test('entries stay until they are deleted, however many come and go beside them', () => {
  const entries = new PassingEntries<number>();
  const staying = Array.from({ length: 20 }, (_, at) => `stays ${at}`);
  staying.forEach((key, at) => {
    entries.set(key, at);
  });
  for (let at = 0; at < 5_000; at += 1) {
    entries.set(`passes ${at}`, at);
    expect(entries.get(`passes ${at}`)).toBe(at);
    entries.delete(`passes ${at}`);
    expect(entries.get(`passes ${at}`)).toBeUndefined();
  }
  expect(staying.map((key) => entries.get(key))).toEqual(entries.values());
  expect(entries.values()).toEqual(staying.map((_, at) => at));
  entries.set('stays 3', 30);
  expect([entries.get('stays 3'), entries.get('constructor')]).toEqual([30, undefined]);
});
