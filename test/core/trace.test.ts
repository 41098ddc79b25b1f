import { inspect } from 'node:util';
import type { Claim, TransferCallback } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { expect, test, vi } from 'vitest';
import { recordingLogger } from '../support/helpers/logger.js';
import { fakeClock, later, receiverOf, runUntilTold, storeWith } from './support.js';
import { listen } from '../support/helpers/listen.js';

type Context = Record<string, unknown>;
type Phase = 'start' | 'error' | 'asyncEnd';

const names = ['receive', 'store', 'confirm', 'handle'] as const;
const phases: readonly Phase[] = ['start', 'error', 'asyncEnd'];

/** Listens to all four channels until the test has finished, and notes what they say. */
function listenToTraces(): { name: string; phase: Phase; context: Context }[] {
  const events: { name: string; phase: Phase; context: Context }[] = [];
  for (const name of names) {
    for (const phase of phases) {
      listen(`tracing:transfer-callbacks:${name}:${phase}`, (context) => {
        events.push({ name, phase, context: { ...(context as Context) } });
      });
    }
  }
  return events;
}

const confirm = (callback: TransferCallback): TransferCallback => structuredClone(callback);

test('a delivery is traced from its arrival to its outcome, with its name in every context', async () => {
  const events = listenToTraces();
  const receiver = receiverOf({ confirm });
  const { data } = transferSucceeded();
  const outcome = await receiver.receive(transferSucceeded(data), { source: 'queue' });
  const { delivery } = outcome;
  const { id, externalId } = data;
  const claim = { delivery, id, call: 'claim' };
  const settle = { delivery, id, call: 'settle' };
  const handle = { delivery, id, externalId, event: 'transfer.success' };
  expect(events).toEqual([
    { name: 'receive', phase: 'start', context: { delivery, source: 'queue' } },
    { name: 'confirm', phase: 'start', context: { delivery, id, externalId } },
    { name: 'confirm', phase: 'asyncEnd', context: { delivery, id, externalId } },
    { name: 'store', phase: 'start', context: claim },
    { name: 'store', phase: 'asyncEnd', context: { ...claim, result: 'claimed' } },
    { name: 'handle', phase: 'start', context: handle },
    { name: 'handle', phase: 'asyncEnd', context: handle },
    { name: 'store', phase: 'start', context: settle },
    { name: 'store', phase: 'asyncEnd', context: { ...settle, result: { overlapped: false } } },
    { name: 'receive', phase: 'asyncEnd', context: { delivery, source: 'queue', result: outcome } },
  ]);
});

test('no context holds data of the transfer, whatever the handler, `confirm` and the store resolve with', async () => {
  const events = listenToTraces();
  const receiver = receiverOf({ confirm, onSuccess: (callback) => callback });
  const callback = transferSucceeded({ walletNumber: '237670000000', amount: 47_110_815 });
  await receiver.receive(callback);
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'duplicate' });
  expect(inspect(events, { depth: 9 })).not.toMatch(/237670000000|47110815/);
});

test('what fails is in the context of its channel', async () => {
  const events = listenToTraces();
  const error = new Error('no');
  const failing = receiverOf({ onSuccess: vi.fn().mockRejectedValueOnce(error) });
  const callback = transferSucceeded();
  expect(await failing.receive(callback)).toMatchObject({ outcome: 'handler_failed' });
  expect(await failing.receive(callback)).toMatchObject({ outcome: 'processed' });
  await receiverOf({
    confirm: () => {
      throw error;
    },
  }).receive(transferSucceeded());
  await receiverOf({ store: { claim: () => Promise.reject(error) } }).receive(transferSucceeded());
  const failed = events.filter(({ phase }) => phase === 'error');
  expect(failed.map(({ name, context }) => [name, context.error === error])).toEqual([
    ['handle', true],
    ['confirm', true],
    ['store', true],
  ]);
});

test('a handler is traced to its real end, after its delivery has timed out', async () => {
  const events = listenToTraces();
  const ends = later();
  const receiver = receiverOf({ handlerTimeoutMs: 20, onSuccess: () => ends.promise });
  const { delivery, outcome } = await receiver.receive(transferSucceeded());
  expect(outcome).toBe('timed_out');
  // A handler that another file has left running renews its lease in this process.
  const isOwnEnd = (event: { phase: Phase; context: Context }): boolean =>
    event.phase === 'asyncEnd' && event.context.delivery === delivery;
  const ended = (): string[] => events.filter(isOwnEnd).map(({ name }) => name);
  expect(ended()).toEqual(['store', 'receive']);
  ends.resolve();
  await vi.waitUntil(() => ended().length === 4);
  expect(ended()).toEqual(['store', 'receive', 'handle', 'store']);
});

test('a second claim under a running handler has the next token, and its calls the name of the delivery', async () => {
  fakeClock();
  const events = listenToTraces();
  const logger = recordingLogger();
  const work = runUntilTold();
  const granted: Claim[] = [];
  const store = storeWith({ granted: (claim) => (granted.push(claim), {}) });
  const claim = vi.spyOn(store, 'claim');
  const delivering = receiverOf({ store, logger, onSuccess: work.onSuccess }).receive(transferSucceeded());
  await vi.advanceTimersByTimeAsync(1_000);
  // As if the store had lost its memory of the claim that the handler runs under.
  await granted[0]?.release();
  await vi.advanceTimersByTimeAsync(4_000);
  work.reject(new Error('no'));
  const { delivery } = await delivering;
  expect(claim.mock.calls.map(([, { token }]) => token)).toEqual([delivery, `${delivery}.2`]);
  const calls = events.filter(({ name, phase }) => name === 'store' && phase === 'start');
  expect(calls.map(({ context }) => context.call)).toEqual(['claim', 'renew', 'claim', 'release']);
  expect(new Set(events.map(({ context }) => context.delivery))).toEqual(new Set([delivery]));
  expect(logger.lines).toHaveLength(2);
  for (const { details } of logger.lines) expect(details).toMatchObject({ delivery });
});

test('each call of the store by `check` is traced', async () => {
  const events = listenToTraces();
  expect(await receiverOf({}).check()).toMatchObject({ ok: true });
  const ended = events.filter(({ phase }) => phase === 'asyncEnd').map(({ context }) => context.call);
  expect(ended).toEqual(['claim', 'claim', 'release', 'claim', 'settle', 'claim']);
});
