import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { memoryStore, transferCallbackReceiver, type CallbackStore, type Lease } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import fc from '../support/fast-check.js';

const leaseMs = 3_001;
const storeTimeoutMs = 1_000;
const handlerTimeoutMs = 5_000;

/** What befalls one call of the store on its way. */
type Fate = 'answered' | 'refused' | 'applied, but the answer is lost' | 'applied, and never answered';
const fate = fc.oneof(
  { weight: 8, arbitrary: fc.constant<Fate>('answered') },
  { weight: 1, arbitrary: fc.constant<Fate>('refused') },
  { weight: 1, arbitrary: fc.constant<Fate>('applied, but the answer is lost') },
  { weight: 1, arbitrary: fc.constant<Fate>('applied, and never answered') },
);
/** How long one run of a handler takes, in steps of the scheduler and in milliseconds, and how it ends. */
const run = fc.record({ tookMs: fc.constantFrom(0, 0, 0, 400, 4_000, 9_000, 40_000), succeeds: fc.boolean() });
const ticks = fc.array(fc.constantFrom(10, 300, 1_000, 2_000, 5_000), { maxLength: 12 });

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

test('under every interleaving: one live claim, no acknowledgement without success, no success undone', async () => {
  const seen = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.infiniteStream(fate),
      fc.infiniteStream(run),
      ticks,
      fc.integer({ min: 2, max: 5 }),
      async (scheduler, fates, runs, steps, copies) => {
        const step = (label: string): Promise<void> => scheduler.schedule(Promise.resolve(), label);
        const records = memoryStore();
        /** When each lease ends unless it is renewed, settled or released: as the store itself sees it. */
        const live = new Map<string, number>();
        let settled = false;
        let successes = 0;

        async function travel<T>(name: string, apply: () => Promise<T>): Promise<T> {
          const end = drawn(fates);
          await step(`${name} arrives`);
          if (end === 'refused') throw new Error(`${name} refused`);
          const answer = await apply();
          if (end === 'applied, and never answered') return new Promise<never>(() => undefined);
          await step(`${name} is answered`);
          if (end !== 'answered') throw new Error(`${name}: answer lost`);
          return answer;
        }

        const store: CallbackStore<{ token: string }> = {
          claim: (key, request) =>
            travel('claim', async () => {
              const claim = await records.claim(key, request);
              if (settled) expect(claim.state, 'a settled record was undone').toBe('settled');
              if (claim.state !== 'claimed') return claim;
              const { token } = request;
              for (const [other, endsAt] of live) {
                if (other !== token) expect(endsAt, 'two live claims').toBeLessThanOrEqual(performance.now());
              }
              live.set(token, performance.now() + leaseMs);
              const { lease } = claim;
              const travelling: Lease<{ token: string }> = {
                tx: { token },
                renew: () =>
                  travel('renew', async () => {
                    const mine = await lease.renew();
                    if (mine) live.set(token, performance.now() + leaseMs);
                    return mine;
                  }),
                settle: () =>
                  travel('settle', async () => {
                    expect(successes, 'settled without a success').toBeGreaterThan(0);
                    settled = true;
                    live.delete(token);
                    return lease.settle();
                  }),
                release: () =>
                  travel('release', () => {
                    live.delete(token);
                    return lease.release();
                  }),
              };
              return { state: 'claimed', lease: travelling };
            }),
        };

        const running = new Set<string>();
        const receivers = ['one process', 'another'].map(() =>
          transferCallbackReceiver({
            store,
            leaseMs,
            storeTimeoutMs,
            handlerTimeoutMs,
            inFlightWaitMs: 6_000,
            logger: false,
            onFailed: () => undefined,
            async onSuccess(_callback, { tx: { token } }) {
              expect(settled, 'a handler was run after the success was recorded').toBe(false);
              for (const other of running) {
                const endsAt = live.get(other) ?? 0;
                expect(endsAt, 'two handlers with live leases').toBeLessThanOrEqual(performance.now());
              }
              running.add(token);
              const { tookMs, succeeds } = drawn(runs);
              await step('handler works');
              await new Promise((resolve) => setTimeout(resolve, tookMs));
              running.delete(token);
              if (!succeeds) throw new Error('handler failed');
              successes += 1;
            },
          }),
        );

        const callback = transferSucceeded();
        let open = copies;
        const deliveries = Array.from({ length: copies }, async (_, copy) => {
          await step(`delivery ${copy} arrives`);
          const before = successes;
          const { outcome } = await (receivers[copy % 2] ?? expect.fail()).receive(callback);
          if (outcome === 'processed') expect(successes, 'processed without a success').toBeGreaterThan(before);
          if (outcome === 'duplicate') expect(successes, 'duplicate without a success').toBeGreaterThan(0);
          seen.set(outcome, (seen.get(outcome) ?? 0) + 1);
          open -= 1;
        });
        for (const ms of steps) {
          void step(`${ms} ms pass`).then(() => {
            vi.advanceTimersByTime(ms);
          });
        }
        const over = Promise.all(deliveries);
        over.catch(() => undefined);
        for (let turn = 0; open > 0 && turn < 5_000; turn += 1) {
          if (scheduler.count() > 0) {
            await scheduler.waitNext(1);
          } else {
            vi.advanceTimersToNextTimer();
            await new Promise((resolve) => setImmediate(resolve));
          }
        }
        expect(open, 'deliveries without an outcome').toBe(0);
        await over;
      },
    ),
    { numRuns: 5_000, plugins: [fc.beforeEach(clearTimers)] },
  );
  // The exploration has been everywhere that it can go.
  expect([...seen.keys()].sort()).toEqual(
    ['processed', 'duplicate', 'in_progress', 'handler_failed', 'timed_out', 'store_unavailable'].sort(),
  );
}, 120_000);

function drawn<T>(stream: Iterator<T>): T {
  return stream.next().value as T;
}

/** Those of holds that have outlived their run. */
function clearTimers(): void {
  vi.clearAllTimers();
}
