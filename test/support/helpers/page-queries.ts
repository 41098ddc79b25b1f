import { compileFunction } from 'node:vm';
import ts from 'typescript';
import { expect } from 'vitest';
import { reconcileTransfers, type PendingTransfer } from 'transfer-callbacks/client';
import { serviceOf } from '../../client/support.js';
import { receiverOf } from '../../core/support.js';
import { findBlocks, findPage } from '../../docs/pages.js';

/** `openPayouts` of the documents. */
type OpenPayouts = (last?: object) => AsyncGenerator<PendingTransfer>;

const page = findPage('docs/reconciliation.md');

/** The index that the page advises, which MySQL makes without its condition. */
export const createIndex = /CREATE INDEX payouts_open [^`]*/.exec(page.text)?.[0] ?? expect.fail('no index');

/** Payouts of which 25 were inserted in one transaction, at one microsecond. */
export const tables = {
  postgres: `CREATE TABLE payouts (id text PRIMARY KEY, created_at timestamptz NOT NULL, paid_at timestamptz, failed_at timestamptz);
    INSERT INTO payouts (id, created_at) SELECT 'p' || lpad(n::text, 2, '0'), '2026-01-15 10:30:00.123456+00' FROM generate_series(1, 25) n`,
  mysql: `CREATE TABLE payouts (id varchar(20) PRIMARY KEY, created_at datetime(6) NOT NULL, paid_at datetime(6), failed_at datetime(6));
    INSERT INTO payouts (id, created_at) VALUES ${Array.from({ length: 25 }, (_, n) => `('p${10 + n}', '2026-01-15 10:30:00.123456')`).join()}`,
};

/**
 * Returns `openPayouts` of docs/reconciliation.md with pages of 10, and with the `readPage` of the block that has
 * `text`. `modules` are what it imports, and `names` what is declared elsewhere.
 */
export function findOpenPayouts(
  text: string,
  modules: object,
  names: Readonly<Record<string, unknown>> = {},
): OpenPayouts {
  const blocks = [...findBlocks(page, 'ts'), ...findBlocks(page, 'text')].map(({ code }) => code);
  const find = (part: string): string =>
    blocks.find((code) => code.includes(part)) ?? expect.fail(`no block with ${part}`);
  const [own, loop = ''] = find('function* openPayouts').split('/** Yields');
  const query = text === 'pg' ? own : find(text);
  const { outputText } = ts.transpileModule(`${query}\n/** Yields${loop}`, {
    compilerOptions: { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022 },
  });
  const code = outputText.replace(/1000|1_000/, '10');
  const exported: { openPayouts?: OpenPayouts } = {};
  const run = compileFunction(code, ['require', 'exports', ...Object.keys(names)]) as (...given: unknown[]) => void;
  run((name: string) => (modules as Record<string, unknown>)[name], exported, ...Object.values(names));
  return exported.openPayouts ?? expect.fail('no openPayouts');
}

/** Reads the 25 payouts by runs: all at once, and a part of them and then the others. */
export async function expectPages(openPayouts: OpenPayouts): Promise<void> {
  const read: string[] = [];
  const client = serviceOf({
    getTransaction(id: string) {
      read.push(id);
      return Promise.resolve({ id, externalId: id, status: 'PENDING' });
    },
  });
  const options = { receiver: receiverOf({ service: client }), concurrency: 1 };
  const all = await reconcileTransfers({ ...options, pending: openPayouts() });
  expect(all).toMatchObject({ pending: 25, queries: 25, stopped: undefined });
  expect(new Set(read).size).toBe(25);
  const { cursor } = await reconcileTransfers({ ...options, pending: openPayouts(), limit: 12 });
  const rest = await reconcileTransfers({ ...options, pending: openPayouts(cursor) });
  expect(rest).toMatchObject({ pending: 13, queries: 13, stopped: undefined });
}
