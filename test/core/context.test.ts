import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import {
  memoryStore,
  RetryLater,
  type HandlerContext,
  type ReceiverOptions,
  type TransferCallback,
} from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { recordingLogger } from '../support/helpers/logger.js';
import { listen } from '../support/helpers/listen.js';
import { later, receiverOf, slowStore, storeWith } from './support.js';
import { collectGarbage } from '../support/helpers/runtime.js';

const requests = new AsyncLocalStorage<string>();
const context = (): string => requests.getStore() ?? 'none';

/** Real timers, as short as the options allow: a fake clock would run them in the context of the test. */
const quick = { storeTimeoutMs: 10, leaseMs: 31, handlerTimeoutMs: 200, confirmTimeoutMs: 100 };

const both = ['acme', 'globex'].map((externalId) => transferSucceeded({ externalId }));

test('what runs for a delivery runs in its own async context, although the timers are shared', async () => {
  const seen: string[] = [];
  const note = (what: string, whose: string): void => {
    seen.push(`${what} of ${whose} in ${context()}`);
  };
  const ends = later();
  const receiver = receiverOf({
    ...quick,
    store: storeWith({
      granted: (claim, { externalId = '' }) => ({
        renew() {
          note('renewal', externalId);
          return claim.renew();
        },
      }),
    }),
    logger: {
      warn: () => undefined,
      error: (details) => {
        note('log line', (details as { externalId: string }).externalId);
      },
    },
    onOutcome({ externalId = '' }) {
      note('onOutcome', externalId);
    },
    onSuccess({ data }: TransferCallback, { signal }: HandlerContext) {
      signal.addEventListener('abort', () => {
        note('abort listener', data.externalId);
      });
      return ends.promise;
    },
  });
  await Promise.all(both.map((callback) => requests.run(callback.data.externalId, () => receiver.receive(callback))));
  ends.resolve();
  await receiver.close();
  for (const what of ['renewal', 'log line', 'abort listener', 'onOutcome']) {
    for (const whose of ['acme', 'globex']) expect(seen).toContain(`${what} of ${whose} in ${whose}`);
  }
  expect(seen.filter((line) => !/of (\w+) in \1$/.test(line))).toEqual([]);
});

test('the signals of handlers and of confirm abort in the context of their delivery when the receiver closes', async () => {
  const seen: string[] = [];
  let waiting = 0;
  const waitForAbort = ({ data }: TransferCallback, { signal }: { signal: AbortSignal }): Promise<never> =>
    new Promise((_resolve, reject) => {
      waiting += 1;
      signal.addEventListener('abort', () => {
        seen.push(`${data.externalId} in ${context()}`);
        reject(signal.reason as Error);
      });
    });
  const handling = receiverOf({ onSuccess: waitForAbort });
  const confirming = receiverOf({ confirm: waitForAbort });
  const deliveries = [handling, confirming].flatMap((receiver) =>
    both.map((callback) => requests.run(callback.data.externalId, () => receiver.receive(callback))),
  );
  await vi.waitUntil(() => waiting === 4);
  await Promise.all([handling, confirming].map((receiver) => receiver.close({ timeoutMs: 0 })));
  await Promise.all(deliveries);
  expect(seen.sort()).toEqual(['acme in acme', 'acme in acme', 'globex in globex', 'globex in globex']);
});

test('a claim that is granted too late is released in the context of its delivery, which is traced', async () => {
  const seen: string[] = [];
  const traced: unknown[] = [];
  listen('tracing:transfer-callbacks:store:start', (context) => {
    const { call, delivery } = context as { call: string; delivery: string };
    if (call === 'release') traced.push(delivery);
  });
  const granted = later();
  const store = storeWith({
    granted: (claim, { externalId = '' }) => ({
      release() {
        seen.push(`${externalId} in ${context()}`);
        return claim.release();
      },
    }),
  });
  const receiver = receiverOf({ ...quick, store: slowStore(() => granted.promise, store) });
  const late = both.map((callback) => requests.run(callback.data.externalId, () => receiver.receive(callback)));
  const outcomes = await Promise.all(late);
  for (const outcome of outcomes) expect(outcome).toMatchObject({ outcome: 'store_unavailable' });
  granted.resolve();
  await vi.waitUntil(() => traced.length === 2);
  expect(traced).toEqual(outcomes.map(({ delivery }) => delivery));
  expect(seen.sort()).toEqual(['acme in acme', 'globex in globex']);
});

// A full garbage collection takes a busy machine a while.
test('the context of a request does not outlive it, however many others follow', { timeout: 30_000 }, async () => {
  const store = new AsyncLocalStorage<object>();
  const receiver = receiverOf(quick);
  let first: WeakRef<object> | undefined;
  await (async () => {
    const request = { body: new Array(1_000).fill('request') };
    first = new WeakRef(request);
    await store.run(request, () => receiver.receive(transferSucceeded()));
  })();
  // Steady traffic winds the shared timers again and again.
  const giveUpAt = performance.now() + 20_000;
  await vi.waitUntil(
    async () => {
      await store.run({}, () => receiver.receive(transferSucceeded()));
      collectGarbage();
      expect(performance.now()).toBeLessThan(giveUpAt);
      return first?.deref() === undefined;
    },
    { timeout: 20_000, interval: 1 },
  );
});

/** Delivers three callbacks to a handler, and returns the warnings about `tx`. */
async function findWarnings(
  onSuccess: (callback: unknown, context: HandlerContext<unknown>) => unknown,
  options: Partial<ReceiverOptions> = {},
): Promise<unknown[]> {
  const logger = recordingLogger();
  const receiver = receiverOf({ store: storeWith({ transactional: true }), logger, onSuccess, ...options });
  for (let count = 0; count < 3; count += 1) await receiver.receive(transferSucceeded());
  return logger.lines.filter(({ message }) => message.includes('`context.tx`'));
}

test('a handler that waits and never uses `tx` is named once, with what it costs', async () => {
  const code = 'HANDLER_WITHOUT_TX';
  expect(await findWarnings(() => delay(5))).toMatchObject([{ level: 'warn', details: { err: { code } } }]);
});

test('a handler that times out is named, too, as all do that wait for each other', async () => {
  expect(await findWarnings(() => delay(50), { handlerTimeoutMs: 10 })).toHaveLength(1);
});

test.each<[string, Parameters<typeof findWarnings>]>([
  ['has used `tx`', [async (_callback, { tx }) => delay(5, tx)]],
  ['has used it after a while', [async (_callback, context) => delay(5).then(() => context.tx)]],
  ['waits for nothing', [() => Promise.resolve()]],
  ['has failed', [() => delay(5).then(() => Promise.reject(new Error('the ledger is closed')))]],
  [
    'asks to be called later',
    [() => delay(5).then(() => Promise.reject(new RetryLater('the payout is not there yet')))],
  ],
  ['is given none', [() => delay(5), { store: memoryStore() }]],
])('a handler that %s is not named', async (_what, given) => {
  expect(await findWarnings(...given)).toEqual([]);
});
