import { expect, test } from 'vitest';
import { drawAttemptsPicture } from '../../scripts/attempts-picture.js';
import { themes } from '../../scripts/pen.js';
import { findPage, readText } from './pages.js';

test.each(Object.entries(themes))(
  'the %s picture of the attempts is the one that npm run pictures draws',
  (name, theme) => {
    expect(readText(`docs/images/attempts-${name}.svg`)).toBe(drawAttemptsPicture(theme));
  },
);

test('the picture calls the times that the service does not document a guess', () => {
  const texts = [...readText('docs/images/attempts-light.svg').matchAll(/>([^<>]+)<\/text>/g)].map(([, text]) => text);
  expect(texts).toEqual(expect.arrayContaining(['about 30 s', '90 s?', '210 s?']));
  expect(texts.filter((text) => text?.startsWith('our guess'))).toHaveLength(1);
});

test('the README shows both, and says in words what they show', () => {
  const { text } = findPage('README.md');
  for (const name of Object.keys(themes)) expect(text).toContain(`docs/images/attempts-${name}.svg`);
  expect(/<img[^>]* alt="([^"]*)"/.exec(text)?.[1]?.length).toBeGreaterThan(60);
});
