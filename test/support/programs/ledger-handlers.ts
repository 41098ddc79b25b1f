import { setTimeout as pause } from 'node:timers/promises';
import {
  RetryLater,
  transferCallbackListener,
  transferCallbackSchema,
  type CallbackStore,
  type HandlerContext,
} from 'transfer-callbacks';
import type { StoreTransaction } from 'transfer-callbacks/testing';
import { defineService } from 'transfer-callbacks/client';
import { z } from 'zod/v4';
import { serveAsApp } from './app.js';

export const ignore = (): void => undefined;

export type Steps<Tx> = (tx: Tx, book: () => Promise<unknown>) => unknown;

/** What handlers do wrong, beside booking, with any library. */
function listMistakes<Tx>({
  fail,
  rollback,
}: Pick<Required<StoreTransaction<Tx>>, 'fail' | 'rollback'>): readonly Steps<Tx>[] {
  return [
    async (_tx, book) => {
      await book();
      throw new Error('after booking');
    },
    async (_tx, book) => {
      await book();
      throw new RetryLater('not now');
    },
    async (tx, book) => {
      await fail(tx).catch(ignore);
      await book().catch(ignore);
    },
    async (tx, book) => {
      await book();
      await fail(tx).catch(ignore);
    },
    async (tx, book) => {
      await book();
      void fail(tx).catch(ignore);
    },
    (_tx, book) => {
      void book().catch(ignore);
      throw new Error('while booking');
    },
    async (_tx, book) => {
      await book();
      setImmediate(() => void book().catch(ignore));
    },
    async (tx, book) => {
      await book();
      await rollback(tx);
    },
  ];
}

/** What only `mysqlStore` rolls back: writes after the transaction has ended. */
function listLaterWrites<Tx>({ rollback, lock }: Required<StoreTransaction<Tx>>): readonly Steps<Tx>[] {
  return [
    async (tx, book) => {
      await rollback(tx);
      await book();
    },
    async (tx, book) => {
      await meetDeadlock(tx, lock);
      await book();
    },
  ];
}

/** Meets another handler that takes the same two locks in opposite order. Fails unless that has ended in a deadlock. */
async function meetDeadlock<Tx>(tx: Tx, lock: (tx: Tx, row: string) => Promise<unknown>): Promise<void> {
  for (const row of Math.random() < 0.5 ? ['a', 'b'] : ['b', 'a']) {
    const isRefused = await lock(tx, row).then(ignore, () => true);
    if (isRefused) return;
    await pause(2);
  }
  throw new Error('no deadlock');
}

const charge = z.looseObject({ type: z.literal('charge.paid'), data: z.looseObject({ id: z.string() }) });
const service = defineService({
  payload: z.union([transferCallbackSchema, charge]),
  read: (payload) => ({ ...(payload.data as { id: string }), state: 'type' in payload ? payload.type : payload.event }),
  states: { 'transfer.success': 'SUCCESS', 'transfer.failed': 'FAILED', 'charge.paid': 'OTHER' },
});

export interface LedgerApp<Tx> {
  readonly store: CallbackStore<Tx>;
  readonly transaction: StoreTransaction<Tx>;
  readonly port: number;
  /** Whether the store rolls back what a handler writes after its transaction has ended. */
  readonly undoesLaterWrites?: boolean;
  /** What handlers do wrong with this library alone. By default they meet a deadlock. */
  readonly own?: readonly Steps<Tx>[];
}

/** Serves a receiver whose handlers book each transfer and each other event. Two deliveries of three make a mistake. */
export async function serveLedger<Tx>({ store, transaction, port, undoesLaterWrites = false, own }: LedgerApp<Tx>) {
  const all = transaction as Required<StoreTransaction<Tx>>;
  const deadlock: Steps<Tx> = async (tx, book) => {
    await book();
    await meetDeadlock(tx, all.lock);
  };
  const mistakes = [...listMistakes(all), ...(own ?? [deadlock]), ...(undoesLaterWrites ? listLaterWrites(all) : [])];
  const bookByChance = async ({ data }: { data: { id: string } }, { tx }: HandlerContext<Tx>): Promise<void> => {
    const steps = mistakes[Math.floor(Math.random() * 1.5 * mistakes.length)];
    const book = async (): Promise<void> => {
      await transaction.write(tx, data.id);
      // Something more to do after it, in which the process may be killed.
      await pause(2);
    };
    await (steps === undefined ? book() : steps(tx, book));
  };
  const times = { storeTimeoutMs: 300, leaseMs: 1_000, inFlightWaitMs: 200 };
  const handlers = { onSuccess: bookByChance, onFailed: bookByChance, onOther: bookByChance };
  await serveAsApp(transferCallbackListener({ store, service, ...times, ...handlers, logger: false }), port);
}
