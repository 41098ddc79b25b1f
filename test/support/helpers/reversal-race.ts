// Delivers success, failure and reversal of many transfers concurrently, and counts what their handlers have booked.
import { setTimeout as pause } from 'node:timers/promises';
import type { CallbackStore } from 'transfer-callbacks';
import type { StoreTransaction } from 'transfer-callbacks/testing';
import { announced, reversingReceiver, type Status } from './reversing.js';

const statuses = ['SUCCESS', 'FAILED', 'REVERSED'] as const;

/** How many transfers each race has. With RACE_TRANSFERS=400 and `--reporter=default` the counts are printed, too. */
export const transfersOr = (count: number): number => Number(process.env.RACE_TRANSFERS ?? count);

export interface Race {
  readonly title: string;
  readonly count: number;
  /** Delivers a callback to one of two receivers. Resolves with whether the service would not send it again. */
  readonly deliver: (receiver: 0 | 1, status: Status, id: string) => Promise<boolean>;
  /** Resolves with how often this was booked for a transfer. */
  readonly countBookings: (status: Status, id: string) => PromiseLike<number> | number;
  /** Called again and again while the callbacks of a transfer are delivered. */
  readonly disturb?: ((id: string) => Promise<unknown>) | undefined;
  /** Whether a success may be booked twice, or beside a failure, as after the end of its record. */
  readonly mayPayAgain?: boolean;
}

/** Returns numbers from 0 to 1, the same in each run. `FAST_CHECK_SEED` tries others. */
export function seededRandom(seed = Number(process.env.FAST_CHECK_SEED ?? 1)): () => number {
  let state = seed;
  return () => {
    // The generator mulberry32.
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A handler that takes up to 15 ms, and fails in 15 of 100 runs. */
export async function workByChance(random: () => number): Promise<void> {
  await pause(random() * 15);
  if (random() < 0.15) throw new Error('The handler has failed.');
}

/** Two copies of each callback of a transfer, in random order within 40 ms, each to one of two receivers. */
function planTransfer(random: () => number) {
  return [...statuses, ...statuses].map((status) => ({
    status,
    afterMs: random() * 40,
    receiver: random() < 0.5 ? (0 as const) : (1 as const),
  }));
}

const lanes = 12;

/**
 * Delivers every callback until the service would not send it again. Resolves with the transfers whose money was not
 * given back exactly once, or was paid wrongly.
 */
export async function race(options: Race): Promise<string[]> {
  const { count, deliver, disturb } = options;
  const random = seededRandom();
  const transfers = Array.from({ length: count }, () => ({ id: crypto.randomUUID(), plan: planTransfer(random) }));
  const deliverAll = async (id: string, plan: ReturnType<typeof planTransfer>): Promise<void> => {
    await Promise.all(
      plan.map(async ({ status, afterMs, receiver }) => {
        await pause(afterMs);
        for (let to = receiver; !(await deliver(to, status, id)); to = to === 0 ? 1 : 0) {
          await pause(20 + random() * 50);
        }
      }),
    );
  };
  const next = transfers.values();
  const runLane = async (): Promise<void> => {
    for (const { id, plan } of next) {
      const running = { isOver: false };
      const disturbing = disturbUntilOver(running, random, () => disturb?.(id));
      await deliverAll(id, plan).finally(() => (running.isOver = true));
      await disturbing;
    }
  };
  await Promise.all(Array.from({ length: lanes }, runLane));
  return judge(transfers, options);
}

async function disturbUntilOver(
  running: { readonly isOver: boolean },
  random: () => number,
  disturb: () => Promise<unknown> | undefined,
): Promise<void> {
  while (!running.isOver) {
    await pause(random() * 20);
    await disturb();
  }
}

async function judge(
  transfers: readonly { readonly id: string }[],
  { title, countBookings, mayPayAgain = false }: Race,
): Promise<string[]> {
  const counts = { paid: 0, paidAgain: 0, paidAndReversed: 0, failed: 0, reversed: 0 };
  const wrong: string[] = [];
  for (const { id } of transfers) {
    const [paid, failed, reversed] = await Promise.all([
      countBookings('SUCCESS', id),
      countBookings('FAILED', id),
      countBookings('REVERSED', id),
    ]);
    if (paid > 0) counts.paid += 1;
    if (paid > 1) counts.paidAgain += 1;
    if (paid > 0 && reversed > 0) counts.paidAndReversed += 1;
    if (failed > 0) counts.failed += 1;
    if (reversed > 0) counts.reversed += 1;
    const isPaidWrongly = !mayPayAgain && (paid > 1 || (paid > 0 && failed > 0));
    if (failed + reversed !== 1 || isPaidWrongly)
      wrong.push(`${id}: ${paid} paid, ${failed} failed, ${reversed} reversed`);
  }
  if (process.env.RACE_TRANSFERS) console.info(title, { ...counts, wrong: wrong.length });
  return wrong;
}

/** A store, and how its handlers book. Without `transaction` they book in this process. */
export interface RacedStore<Tx> {
  readonly store: CallbackStore<Tx>;
  /** The store of the second receiver. Default: the same. */
  readonly other?: CallbackStore<Tx>;
  readonly transaction?: Pick<StoreTransaction<Tx>, 'write' | 'count'> | undefined;
}

/** A race of two receivers in this process. */
export async function raceInProcess<Tx>(
  options: Pick<Race, 'title' | 'count' | 'disturb' | 'mayPayAgain'>,
  { store, other = store, transaction }: RacedStore<Tx>,
): Promise<string[]> {
  const random = seededRandom();
  const makeReceiver = (of: CallbackStore<Tx>) =>
    reversingReceiver(of, {
      async handle(status, id, { tx }) {
        await workByChance(random);
        await transaction?.write(tx, `${status} ${id}`);
      },
    });
  const receivers = [makeReceiver(store), makeReceiver(other)] as const;
  const wrong = await race({
    ...options,
    async deliver(to, status, id) {
      const { outcome } = await receivers[to].receiver.receive(announced(status, id));
      return ['processed', 'duplicate', 'conflict'].includes(outcome);
    },
    countBookings(status, id) {
      const booked = `${status} ${id}`;
      if (transaction !== undefined) return transaction.count(booked);
      return receivers.flatMap(({ ran }) => ran).filter((each) => each === booked).length;
    },
  });
  await Promise.all(receivers.map(({ receiver }) => receiver.close()));
  return wrong;
}
