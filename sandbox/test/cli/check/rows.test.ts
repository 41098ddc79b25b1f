// The table of rows is that of the README and of the help.
import { expect, test } from 'vitest';
import { runSandboxCli as run } from '../../../../test/cli/support.js';
import { findPage } from '../../../../test/docs/pages.js';
import { rows } from '../../../src/cli/check/rows.js';

const all = rows;

test('the README shows each row as it is played', () => {
  const { text } = findPage('sandbox/README.md');
  const lines = all.map(({ name, sent, right, less = '' }) => `| \`${name}\` | ${sent} | ${right} | ${less} |`);
  expect(text).toContain(`${lines.join('\n')}\n`);
});

test('the help lists each row that can be skipped, in words that fit the table', async () => {
  const { out } = await run('help', 'check');
  const words = out.replaceAll(/\s+/g, ' ');
  expect(words).toContain(`Leave a row out (repeatable): ${all.map(({ name }) => name).join(', ')}`);
  for (const { name, right } of all) expect([name.length <= 18, right.length <= 31]).toEqual([true, true]);
});
