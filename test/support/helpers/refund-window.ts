// Opens the window between the snapshot of the first statement of a claim and its locks, in PostgreSQL.
import type { Pool } from 'pg';
import type { CallbackStore } from 'transfer-callbacks';
import { expect, vi } from 'vitest';
import { announced, reversingReceiver, type Status } from './reversing.js';

/** Any number. The test holds this lock while the window is open. */
const gate = 4_711;

/** The settings of a connection whose claims wait at the gate before they take a lock. */
export const gated = '-c search_path=gated,pg_catalog,public';

/** Makes a function of the store's own name, which the connections with `gated` find first. */
export async function makeGate(admin: Pool): Promise<void> {
  await admin.query(`CREATE SCHEMA gated;
CREATE FUNCTION gated.pg_try_advisory_xact_lock(number bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_lock_shared(${gate});
  PERFORM pg_advisory_unlock_shared(${gate});
  RETURN pg_catalog.pg_try_advisory_xact_lock(number);
END $$`);
}

/** Runs `during` while the claim that `claim` makes has its snapshot, and no lock yet. Resolves with what `claim` does. */
export async function inWindow<T>(admin: Pool, claim: () => Promise<T>, during: () => Promise<unknown>): Promise<T> {
  const holder = await admin.connect();
  try {
    await holder.query(`SELECT pg_advisory_lock(${gate})`);
    const claimed = claim();
    const waiting = `SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = ${gate} AND NOT granted`;
    await vi.waitUntil(async () => (await holder.query(waiting)).rowCount !== 0, { interval: 5 });
    await during();
    await holder.query(`SELECT pg_advisory_unlock(${gate})`);
    return await claimed;
  } finally {
    holder.release(true);
  }
}

export const isolations = ['read committed', 'repeatable read', 'serializable'];

type Store = CallbackStore<unknown>;

/** A busy machine may keep the window open for long. */
export const patient = { storeTimeoutMs: 9_000, leaseMs: 29_000 };

/** One order of events around the window of a claim on the first store. */
type WindowCase = (store: Store, other: Store, admin: Pool) => Promise<void>;

/** What meets the claim of a callback, what has run in the end, and how the callback ends. */
interface Meeting {
  readonly status: Status;
  readonly meanwhile: readonly Status[];
  /** Whether the record of the transfer ends after that, and what was refunded stays. */
  readonly transferEnds?: boolean;
  readonly ran: readonly Status[];
  readonly ends: string;
}

/** A database may end the claim for what it meets, so that the service sends the callback again. */
function toCase(meeting: Meeting): WindowCase {
  const { status, meanwhile, transferEnds = false, ran } = meeting;
  return async (store, other, admin) => {
    const id = crypto.randomUUID();
    const slow = reversingReceiver(store, patient);
    const quick = reversingReceiver(other, patient);
    let { outcome } = await inWindow(
      admin,
      () => slow.receiver.receive(announced(status, id)),
      async () => {
        for (const each of meanwhile) await quick.receiver.receive(announced(each, id));
        if (transferEnds) await other.forget?.(id, JSON.stringify([meanwhile.at(-1), 100, 'XAF', `payout-${id}`]));
      },
    );
    if (outcome === 'store_unavailable') ({ outcome } = await slow.receiver.receive(announced(status, id)));
    expect({ ...meeting, ends: outcome }).toEqual(meeting);
    expect([...quick.ran, ...slow.ran]).toEqual(ran.map((each) => `${each} ${id}`));
    // The second record is there if, and only if, one of the two was handled.
    const refund = (await other.read?.(id, 'reversal'))?.state;
    expect({ meeting, refund }).toEqual({ meeting, refund: ran.at(-1) === 'SUCCESS' ? 'free' : 'handled' });
    await Promise.all([slow.receiver.close(), quick.receiver.close()]);
  };
}

const meetings: readonly Meeting[] = [
  { status: 'FAILED', meanwhile: ['SUCCESS'], ran: ['SUCCESS'], ends: 'conflict' },
  { status: 'REVERSED', meanwhile: ['SUCCESS'], ran: ['SUCCESS', 'REVERSED'], ends: 'processed' },
  { status: 'FAILED', meanwhile: ['FAILED'], ran: ['FAILED'], ends: 'duplicate' },
  { status: 'REVERSED', meanwhile: ['FAILED'], ran: ['FAILED'], ends: 'duplicate' },
  { status: 'FAILED', meanwhile: ['SUCCESS', 'REVERSED'], ran: ['SUCCESS', 'REVERSED'], ends: 'duplicate' },
  { status: 'SUCCESS', meanwhile: ['REVERSED'], ran: ['REVERSED'], ends: 'duplicate' },
  { status: 'FAILED', meanwhile: ['REVERSED'], transferEnds: true, ran: ['REVERSED'], ends: 'duplicate' },
];

export const windowCases = meetings.map(toCase);
