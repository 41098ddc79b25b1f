import { expect, test } from 'vitest';
import { findBlocks, findPage, findTable } from './pages.js';

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

test('the README has at most 130 lines of at most 140 columns, tables apart', () => {
  const lines = readme.text
    .trimEnd()
    .split('\n')
    .filter((line) => !line.startsWith('|'));
  expect(lines.length).toBeLessThanOrEqual(130);
  expect(lines.filter(({ length }) => length > 140)).toEqual([]);
});

test('the first ten lines of the README name its field, and each service that a definition is for', () => {
  const first = readme.text.split('\n').slice(0, 10).join('\n');
  for (const word of ['dempotent', 'webhook', 'PostgreSQL', 'MySQL', 'Redis', 'Express', 'Next.js']) {
    expect(first).toContain(word);
  }
  const services = findTable(findPage('docs/services.md'), 'service, definition').map(
    ([cell = '']) => /^(.*?)(?: \d)?, \[/.exec(cell)?.[1] ?? expect.fail(cell),
  );
  expect(services.length).toBeGreaterThan(9);
  expect(services.filter((name) => !first.includes(name))).toEqual([]);
});

test('after 30 lines the reader of the README has run an app and its check', () => {
  const firstScreen = { ...readme, text: readme.text.split('\n').slice(0, 32).join('\n') };
  const [app] = findBlocks(firstScreen, 'ts');
  expect(app?.code).toContain('memoryStore()');
  const [commands] = findBlocks(firstScreen, 'sh');
  expect(commands?.code).toMatch(/^npm install .*^npx transfer-sandbox check /ms);
});

test('the README has the two commands that a fresh clone begins with', () => {
  for (const command of ['npm ci && npm run demo', 'npm ci && npm test']) {
    expect(findPage('README.md').text).toMatch(new RegExp(`^${command} +#`, 'm'));
  }
});
