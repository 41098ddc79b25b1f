import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { Client } from 'pg';
import type { SqlStore } from 'transfer-callbacks';
import type { StoreTransaction } from 'transfer-callbacks/testing';
import { expect, vi } from 'vitest';
import { claimFree, request } from './support.js';

/** A library of SQL whose client gives a statement up after a time, as `pg` does with `query_timeout`. */
export interface ImpatientLibrary<Tx> {
  readonly store: SqlStore<Tx>;
  /** The table of the store. */
  readonly table: string;
  readonly transaction: StoreTransaction<Tx>;
  /** Runs a transaction of the app's. */
  readonly runOwn: () => PromiseLike<unknown>;
  /** How long the claim may be held at most. The server runs its statement for longer. */
  readonly maxHeldMs?: number;
}

/** The parameter of an address that makes every client of `pg` give up. */
export const impatience = '?query_timeout=300';

/** What waits in the server when the client gives up: a statement of the handler, or the first one of the claim. */
export const waiting = ['handler', 'claim'] as const;
/** What uses the connections next. */
export const nextUsers = ['the same callback', 'another callback', 'a transaction of the app'] as const;

/**
 * Lets a claim fail while the server still runs a statement of it, and uses the connections again once the server has
 * ended that statement. Expects that nothing of the failed claim is kept, and that its callback is handled once.
 */
export async function expectNothingKept<Tx>(
  url: string,
  library: ImpatientLibrary<Tx>,
  waits: (typeof waiting)[number],
  next: (typeof nextUsers)[number],
): Promise<void> {
  const { store, transaction, maxHeldMs } = library;
  const claimed = maxHeldMs === undefined ? request : { ...request, maxHeldMs };
  const [id, row] = [randomUUID(), randomUUID()];
  const rival = new Client(url);
  await rival.connect();
  try {
    await rival.query('BEGIN');
    if (waits === 'handler') {
      await rival.query('INSERT INTO locked VALUES ($1)', [row]);
      const claim = await claimFree(store, claimed, id);
      await transaction.write(claim.tx, id);
      await expect(Promise.resolve(transaction.lock?.(claim.tx, row))).rejects.toThrow();
      await claim.release();
    } else {
      await rival.query(`LOCK TABLE ${library.table} IN EXCLUSIVE MODE`);
      await expect(store.claim(id, claimed)).rejects.toThrow();
    }
    if (maxHeldMs !== undefined) await setTimeout(2 * maxHeldMs);
  } finally {
    await rival.end();
  }
  if (next === 'a transaction of the app') await library.runOwn();
  if (next === 'another callback') await (await claimFree(store)).settle();
  // The lock is free when the server has replied to the ROLLBACK.
  const again = await vi.waitUntil(async () => {
    const reply = await store.claim(id, { ...request, token: 'the retry' });
    expect(reply.state).not.toBe('handled');
    return reply.state === 'claimed' && reply.claim;
  });
  await transaction.write(again.tx, id);
  await again.settle();
  expect([waits, next, await transaction.count(id)]).toEqual([waits, next, 1]);
}
