import { transferCallbackSchema } from 'transfer-callbacks';
import { expect, test } from 'vitest';
import { findBlocks, findPage } from './pages.js';

const readme = findPage('README.md');

test('what the README shows of `check` is what the README of the sandbox shows of the same endpoint', () => {
  const shown = findBlocks(readme, 'text').find(({ code }) => code.includes('transfer-sandbox check'))?.code ?? '';
  const [{ code: whole } = expect.fail('Nor does that of the sandbox.')] = findBlocks(
    findPage('sandbox/README.md'),
    'text',
  );
  expect(whole).toContain(shown.slice(shown.indexOf('\n✗') + 1));
  expect(shown).toContain('✗');
});

test('the README has at most 169 lines, and after 60 its reader has run an app and seen a callback', () => {
  expect(readme.text.trimEnd().split('\n').length).toBeLessThanOrEqual(169);
  const firstScreen = { ...readme, text: readme.text.split('\n').slice(0, 60).join('\n') };
  const languages = ['json', 'text', 'ts', 'sh'].map((language) => findBlocks(firstScreen, language).length);
  expect(languages).toEqual([1, 1, 1, 1]);
  expect(findBlocks(firstScreen, 'ts')[0]?.code).toContain('memoryStore()');
});

test('the callback of the README is one as the service documents it', () => {
  const [{ code } = expect.fail('The README shows no callback.')] = findBlocks(readme, 'json');
  expect(transferCallbackSchema.parse(JSON.parse(code))).toEqual(JSON.parse(code));
});

test('the README has the two commands that a fresh clone begins with', () => {
  for (const command of ['npm ci && npm run demo', 'npm ci && npm test']) {
    expect(findPage('README.md').text).toMatch(new RegExp(`^${command} +#`, 'm'));
  }
});
