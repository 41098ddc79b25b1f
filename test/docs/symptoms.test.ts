// The tables of docs/errors.md by status and by symptom, compared with the outcomes of the code.
import { expect, test } from 'vitest';
import { outcomes, special } from '../../src/core/outcomes.js';
import { findNames, findPage, findTable } from './pages.js';

const page = findPage('docs/errors.md');
const tables = page.text.split(/^## /m).filter((section) => /\| check first \| then \|$/m.test(section));
const rows = findTable(page, 'status').map(([status = '', outcome]) => `${status} ${findNames(outcome)[0] ?? 'none'}`);

test('each outcome that is no 2xx has a row with its status, and no row has another one', () => {
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
  expect(tables).toHaveLength(3);
  for (const line of tables.flatMap((table) =>
    table
      .split('\n')
      .filter((each) => /^\| (?!---)/.test(each))
      .slice(1),
  )) {
    const cells = line.split(' | ');
    expect.soft(cells.at(-1), line).toMatch(/^\[[^\]]+\]\([^)]+\) \|$/);
    expect.soft(line.match(/\]\(/g), line).toHaveLength(1);
    expect.soft(cells.at(-2)?.split(' ').length, line).toBeLessThanOrEqual(16);
  }
});
