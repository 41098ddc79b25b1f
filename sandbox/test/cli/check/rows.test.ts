// The tables and the output in the README and in the help are those of the command.
import { expect, test } from 'vitest';
import { runSandboxInProcess as run } from '../../../../test/cli/in-process.js';
import { startSandboxCli as start } from '../../../../test/cli/support.js';
import { containing } from '../../../../test/support/helpers/containing.js';
import { findBlocks, findPage } from '../../../../test/docs/pages.js';
import { rows } from '../../../src/cli/check/rows.js';
import { hmac } from './by-hand.js';
import { key } from './defined-support.js';
import { makeBooks, serveBodies } from './support.js';

test('the README shows each row as it is played', () => {
  const { text } = findPage('sandbox/README.md');
  const lines = rows.map(({ name, sent, right, less = '' }) => `| \`${name}\` | ${sent} | ${right} | ${less} |`);
  expect(text).toContain(`${lines.join('\n')}\n`);
});

test('the help lists each row that can be skipped, in words that fit the table', async () => {
  const { out } = await run('help', 'check');
  const words = out.replaceAll(/\s+/g, ' ');
  expect(words).toContain(`Leave a row out (repeatable): ${rows.map(({ name }) => name).join(', ')}`);
  for (const { name, right } of rows) expect([name.length <= 18, right.length <= 31]).toEqual([true, true]);
});

test('a row that cannot be skipped is refused, with the name that is meant', async () => {
  const { code, err } = await run('check', '--to', 'http://127.0.0.1:9/', '--skip', 'burts');
  expect([code, err]).toEqual([2, containing('Did you mean `burst`?')]);
});

test('the first line of cmd.exe in the help is one argument there', async () => {
  const { out } = await run('help', 'check');
  const line = out.split('\n').find((each) => each.includes('%ID% %STATUS%')) ?? '';
  // cmd.exe knows no backslash: what it acts on must be between its quotes.
  const outside = line.split('"').filter((_each, index) => index % 2 === 0);
  expect(outside.join('')).not.toMatch(/[<>|&^]/);
  // The program splits what is left as CommandLineToArgvW does.
  const [, value = ''] = /--count "((?:\\"|[^"])*)"$/.exec(line.trim()) ?? [];
  expect(value.replaceAll('\\"', '"')).toBe('find /c "%ID% %STATUS%" < ledger.txt');
});

test('the README shows what a handler of Paystack gets that refunds each copy, and drops reversals', async () => {
  const { book, count } = await makeBooks();
  const completed = new Set<unknown>();
  const url = await serveBodies(async (body, { headers }) => {
    if (headers['x-paystack-signature'] !== hmac('sha512', body)) return 401;
    const { event, data } = JSON.parse(body) as { event: string; data: { reference?: string } };
    const status = { 'transfer.success': 'SUCCESS', 'transfer.failed': 'FAILED' }[event];
    if (status === undefined || data.reference === undefined) return 200;
    const externalId = data.reference;
    if (status === 'SUCCESS' && completed.has(externalId)) return 200;
    if (status === 'SUCCESS') completed.add(externalId);
    await book({ data: { externalId, status: status as 'SUCCESS' } });
    return 200;
  });
  const args = ['check', '--service', 'paystack', '--to', url, '--settle', '3', ...count];
  const { code, out } = await start(args, { env: { CALLBACK_SECRET: key } }).ended;
  const [shown] = findBlocks(findPage('sandbox/README.md'), 'text');
  expect(out).toContain(shown?.code ?? expect.fail('It shows no check.'));
  expect(out).toMatch(/^paystack, as read in public documentation on [\d-]+, not seen live\. Source:\n/);
  const find = (sign: string) => [...out.matchAll(RegExp(`^${sign} (\\S+)`, 'gm'))].map(([, name]) => name);
  expect([code, find('✗'), find('!')]).toEqual([
    1,
    [
      ...['failed-duplicate', 'failed-burst', 'failed-lost'],
      ...['reversed', 'reversed-burst', 'reversed-first', 'success-again'],
    ],
    ['unbookable', 'unknown-state', 'flip', 'failed-after', 'other-amount', 'list'],
  ]);
});
