import { expect, test } from 'vitest';
import { receiverDefaults } from '../../src/core/options.js';
import { attemptsPerCallback, firstRetryMs } from '../../src/core/service.js';
import { findPage, readText } from './pages.js';

const pictures = ['light', 'dark'].map((theme) => `docs/images/attempts-${theme}.svg`);
const findTexts = (path: string): string[] =>
  [...readText(path).matchAll(/>([^<>]+)<\/text>/g)].map(([, text = '']) => text);

test.each(pictures)('%s shows the times of the code', (path) => {
  const { leaseMs, handlerTimeoutMs, inFlightWaitMs } = receiverDefaults;
  expect(findTexts(path)).toEqual(
    expect.arrayContaining([
      `makes ${attemptsPerCallback} attempts`,
      `about ${firstRetryMs / 1_000} s`,
      `the lease lasts ${leaseMs / 1_000} s`,
      `the deadline is ${handlerTimeoutMs / 1_000} s`,
      `one waits, up to ${inFlightWaitMs / 1_000} s`,
    ]),
  );
});

test.each(pictures)('%s calls the times that the service does not document a guess', (path) => {
  const texts = findTexts(path);
  expect(texts).toEqual(expect.arrayContaining(['about 30 s', '90 s?', '210 s?']));
  expect(texts.filter((text) => text.startsWith('our guess'))).toHaveLength(1);
});

test('the README shows both, and describes in words what they show', () => {
  const { text } = findPage('README.md');
  for (const path of pictures) expect(text).toContain(path);
  expect(/<img[^>]* alt="([^"]*)"/.exec(text)?.[1]?.length).toBeGreaterThan(60);
});
