import { beforeAll, expect, test } from 'vitest';
import type { CallbackStore } from 'transfer-callbacks';
import { raceInProcess, seededRandom, transfersOr, type RacedStore } from '../support/helpers/reversal-race.js';
import { factsOf } from '../support/helpers/reversing.js';
import { contractTransaction } from '../support/servers/postgres.js';
import { startStoresForFile, type Store } from './refund-support.js';

const { own, stores } = startStoresForFile();
let transaction: Awaited<ReturnType<typeof contractTransaction>>;
beforeAll(async () => {
  transaction = await contractTransaction(own.pool);
});

type Raced = RacedStore<unknown> & { readonly store: Store };
const all: [string, () => Raced][] = stores.map(([name, makeStore]) => [
  name,
  () => ({ store: makeStore(), ...(name === 'pgStore' && { transaction }) }),
]);
const leased = all.slice(0, 2);
const count = transfersOr(40);
const timeoutMs = 60_000 + 200 * count;

test.each(all)(
  'on %s each transfer is refunded once, in any order of its callbacks',
  async (name, makeStore) => {
    expect(await raceInProcess({ title: name, count }, makeStore())).toEqual([]);
  },
  timeoutMs,
);

test.each(all)(
  'on %s each transfer is refunded once, although the record of its success ends again and again',
  async (name, makeStore) => {
    const raced = makeStore();
    const disturb = (id: string): Promise<boolean> => raced.store.forget(id, factsOf('SUCCESS', id));
    const title = `${name}, records of successes end`;
    expect(await raceInProcess({ title, count, disturb, mayPayAgain: true }, raced)).toEqual([]);
  },
  timeoutMs,
);

test.each(leased)(
  'on %s each transfer is refunded once, although successes are recorded after their lease',
  async (name, makeStore) => {
    const { store } = makeStore();
    const random = seededRandom();
    // Half of the successes have a lease that is shorter than their handler, and is not renewed.
    const frozen: CallbackStore<unknown> = {
      ...store,
      async claim(key, request) {
        const isFrozen = request.event === 'transfer.success' && random() < 0.5;
        const reply = await store.claim(key, { ...request, ...(isFrozen && { leaseMs: 2 }) });
        if (reply.state !== 'claimed' || !isFrozen) return reply;
        return { ...reply, claim: { ...reply.claim, renew: () => Promise.resolve(true) } };
      },
    };
    const title = `${name}, late successes`;
    expect(await raceInProcess({ title, count, mayPayAgain: true }, { store: frozen })).toEqual([]);
  },
  timeoutMs,
);
