import type { Pool } from 'pg';
import type { CallbackStore } from 'transfer-callbacks';
import { expect } from 'vitest';
import { inWindow } from './refund-window.js';
import { announced, reversingReceiver, type Status } from './reversing.js';

export const isolations = ['read committed', 'repeatable read', 'serializable'];

type Store = CallbackStore<unknown>;

/** A busy machine may keep the window open for long. */
export const patient = { storeTimeoutMs: 9_000, leaseMs: 29_000 };

/** One order of events around the window of a claim on the first store. */
type WindowCase = (store: Store, other: Store, admin: Pool) => Promise<void>;

/**
 * A callback of one status whose claim meets the COMMIT of another one. A database may end the claim for it, so that the
 * service sends the callback again.
 */
function toCase(status: Status, meanwhile: readonly Status[], ran: readonly Status[], ends: string): WindowCase {
  return async (store, other, admin) => {
    const id = crypto.randomUUID();
    const slow = reversingReceiver(store, patient);
    const quick = reversingReceiver(other, patient);
    let { outcome } = await inWindow(
      admin,
      () => slow.receiver.receive(announced(status, id)),
      async () => {
        for (const each of meanwhile) await quick.receiver.receive(announced(each, id));
      },
    );
    if (outcome === 'store_unavailable') ({ outcome } = await slow.receiver.receive(announced(status, id)));
    expect([status, meanwhile, outcome]).toEqual([status, meanwhile, ends]);
    const all = [...quick.ran, ...slow.ran];
    expect(all).toEqual(ran.map((each) => `${each} ${id}`));
    // The second record is there if, and only if, one of the two was handled.
    const refund = (await other.read?.(id, 'reversal'))?.state;
    expect([status, meanwhile, refund]).toEqual([status, meanwhile, ran.at(-1) === 'SUCCESS' ? 'free' : 'handled']);
    await Promise.all([slow.receiver.close(), quick.receiver.close()]);
  };
}

/** The record of a transfer ends, and what was refunded stays. */
const onlyRefundAppears: WindowCase = async (store, other, admin) => {
  const id = crypto.randomUUID();
  const slow = reversingReceiver(store, patient);
  const quick = reversingReceiver(other, patient);
  let { outcome } = await inWindow(
    admin,
    () => slow.receiver.receive(announced('FAILED', id)),
    async () => {
      await quick.receiver.receive(announced('REVERSED', id));
      await other.forget?.(id, JSON.stringify(['REVERSED', 100, 'XAF', `payout-${id}`]));
    },
  );
  if (outcome === 'store_unavailable') ({ outcome } = await slow.receiver.receive(announced('FAILED', id)));
  expect(outcome).toBe('duplicate');
  expect(slow.ran).toEqual([]);
  await Promise.all([slow.receiver.close(), quick.receiver.close()]);
};

export const windowCases: readonly WindowCase[] = [
  toCase('FAILED', ['SUCCESS'], ['SUCCESS'], 'conflict'),
  toCase('REVERSED', ['SUCCESS'], ['SUCCESS', 'REVERSED'], 'processed'),
  toCase('FAILED', ['FAILED'], ['FAILED'], 'duplicate'),
  toCase('REVERSED', ['FAILED'], ['FAILED'], 'duplicate'),
  toCase('FAILED', ['SUCCESS', 'REVERSED'], ['SUCCESS', 'REVERSED'], 'duplicate'),
  toCase('SUCCESS', ['REVERSED'], ['REVERSED'], 'duplicate'),
  onlyRefundAppears,
];
