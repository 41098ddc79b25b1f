import { expect, test } from 'vitest';
import { findBlocks, findPage } from './pages.js';

test('what the README shows of `check` is what the README of the sandbox shows of the same endpoint', () => {
  const [{ code: shown } = expect.fail('The README shows no check.')] = findBlocks(findPage('README.md'), 'text');
  const [{ code: whole } = expect.fail('Nor does that of the sandbox.')] = findBlocks(
    findPage('sandbox/README.md'),
    'text',
  );
  expect(whole).toContain(shown.slice(shown.indexOf('\n✗') + 1));
});
