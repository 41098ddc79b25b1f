import type { ChildProcess } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import type { CallbackStore } from 'transfer-callbacks';
import { transferFailed, transferSucceeded, type StoreTransaction } from 'transfer-callbacks/testing';
import { expect } from 'vitest';
import { post } from '../helpers/post.js';
import { startTwoApps } from './two-apps.js';

export interface LedgerRun<Tx> {
  /** How many callbacks are delivered. */
  readonly count: number;
  /** Starts a process of the app on this port. It sends its port when it listens. */
  readonly fork: (port: number) => ChildProcess;
  /** Restarts the database. */
  readonly restart: () => Promise<void>;
  readonly store: Required<Pick<CallbackStore<Tx>, 'read'>>;
  readonly transaction: Pick<StoreTransaction<Tx>, 'count'>;
}

const senders = 32;

/** Moves half of the items anywhere. The others stay, so that copies that follow each other are sent concurrently. */
function shuffleHalf<T>(items: readonly T[]): T[] {
  return items
    .map((item, index) => ({ item, place: Math.random() < 0.5 ? index : Math.random() * items.length }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item);
}

/** Makes a transfer that has failed, one that has succeeded, or an event for `onOther`, with its key in the store. */
function makeCallback(_: unknown, index: number) {
  const { event, data } = index % 3 === 0 ? transferFailed() : transferSucceeded();
  if (index % 3 < 2) return { id: data.id, key: data.id, body: { event, data } };
  return { id: data.id, key: `other:charge.paid:${data.id}`, body: { type: 'charge.paid', data } };
}

/**
 * Delivers callbacks one to five times each, to two processes that are killed at random moments, with the database
 * restarted in the middle. Each delivery is repeated until it is acknowledged: nothing is given up. Expects each
 * callback to be booked once and handled in the end.
 */
export async function keepLedger<Tx>({ count, fork, restart, store, transaction }: LedgerRun<Tx>): Promise<void> {
  const { urls, killWhile } = await startTwoApps(fork);
  const callbacks = Array.from({ length: count }, makeCallback);
  const deliveries = shuffleHalf(callbacks.flatMap(({ body }, index) => Array<object>((index % 5) + 1).fill(body)));
  const planned = deliveries.length;
  let done = false;

  async function sendAll(sender: number): Promise<void> {
    for (let body = deliveries.pop(); body !== undefined; body = deliveries.pop()) {
      for (let turn = sender; ; turn += 1) {
        const status = await post(urls[turn % 2 === 0 ? 0 : 1], body).then(
          (response) => response.status,
          () => 0,
        );
        if (status === 200) break;
        await pause(50);
      }
    }
  }
  async function restartInTheMiddle(): Promise<void> {
    while (deliveries.length > planned / 2) await pause(20);
    await restart();
  }

  const killing = killWhile(() => !done);
  await Promise.all([restartInTheMiddle(), ...Array.from({ length: senders }, (_, sender) => sendAll(sender))]);
  done = true;
  // How many there are in the time of a few hundred callbacks depends on the machine.
  expect(await killing).toBeGreaterThan(0);
  for (const { id, key } of callbacks) {
    expect([await transaction.count(id), (await store.read(key)).state], key).toEqual([1, 'handled']);
  }
}
