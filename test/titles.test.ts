import { expect, test } from 'vitest';
import { requireShortTitles } from './support/helpers/titles.js';

test('every test fails whose title, or that of its `describe`, is longer than 200 characters', () => {
  const [short, long] = ['x'.repeat(200), 'x'.repeat(201)];
  expect(() => {
    requireShortTitles({ name: short, suite: { name: short } });
  }).not.toThrow();
  for (const task of [{ name: long }, { name: short, suite: { name: short, suite: { name: long } } }]) {
    expect(() => {
      requireShortTitles(task);
    }).toThrow(`Expected a title of at most 200 characters, got 201: ${'x'.repeat(80)}…`);
  }
});
