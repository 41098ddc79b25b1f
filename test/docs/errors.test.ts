// docs/errors.md: the sections to which the messages of errors lead, and its tables by status and by symptom.
import { expect, test } from 'vitest';
import { TransferCallbackError } from 'transfer-callbacks';
import { TransferClientError } from 'transfer-callbacks/client';
import { outcomes, special } from '../../src/core/outcomes.js';
import { findAnchors, findNames, findPage, findTable } from './pages.js';

const page = findPage('docs/errors.md');

test('the message of an error leads to the section of its own code, not to that of its cause', () => {
  const anchors = findAnchors(page);
  const codes = [...page.text.matchAll(/^### (.+)$/gm)].map(([, code = '']) => code);
  expect(codes.length).toBeGreaterThan(20);
  for (const code of codes) {
    for (const error of [
      new TransferCallbackError(code as 'CLOSING', 'It failed.'),
      new TransferClientError(code as 'BUSY', 'It failed.'),
    ]) {
      const section = code.toLowerCase();
      expect(anchors).toContain(section);
      const isPlain = code === 'INVALID_ARGUMENT' || code === 'RETRY_LATER';
      const end = isPlain ? '' : ` See node_modules/transfer-callbacks/docs/errors.md#${section}.`;
      expect(error.message).toBe(`It failed.${end}`);
      const outer = new TransferClientError('NOT_HANDLED', `The receiver ended: ${error.message}.`);
      expect(outer.message).toMatch(/^The receiver ended: It failed\. See [^ ]+#not_handled\.$/);
    }
  }
});

test('each outcome that is no 2xx has a row with its status, and no row has another one', () => {
  const rows = findTable(page, 'status').map(
    ([status = '', outcome]) => `${status} ${findNames(outcome)[0] ?? 'none'}`,
  );
  const refusals = Object.entries(outcomes)
    .filter(([, { status }]) => status !== 200)
    .map(([outcome, { status }]) => `${status} ${outcome}`);
  // What a request can get beside the row of its outcome: see `RequestFault` and `special`.
  const faults = [`${special.unreadable.status} invalid`, '405 invalid', '413 invalid', '415 invalid'];
  // What responds in place of the receiver: the router of the app, and a rate limit in front of it.
  const others = [...faults, '404 none', '429 none'];
  expect([...new Set(rows)].sort()).toEqual([...refusals, ...others].sort());
});

test('each row has one line, a cause to check, and one link', () => {
  const tables = page.text.split(/^## /m).filter((section) => /\| check first \| then \|$/m.test(section));
  expect(tables).toHaveLength(3);
  for (const line of tables.flatMap((table) => table.match(/^\| (?!---).*$/gm)?.slice(1) ?? [])) {
    const cells = line.split(' | ');
    expect.soft(cells.at(-1), line).toMatch(/^\[[^\]]+\]\([^)]+\) \|$/);
    expect.soft(line.match(/\]\(/g), line).toHaveLength(1);
    expect.soft(cells.at(-2)?.split(' ').length, line).toBeLessThanOrEqual(16);
  }
});
