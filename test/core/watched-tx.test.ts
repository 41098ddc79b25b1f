import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { memoryStore, RetryLater, type HandlerContext, type ReceiverOptions } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { recordingLogger } from '../support/helpers/logger.js';
import { receiverOf } from './support.js';

const transactional = () => ({ ...memoryStore(), transactional: true });

/** Delivers three callbacks to a handler, and returns the warnings about `tx`. */
async function findWarnings(
  onSuccess: (callback: unknown, context: HandlerContext<unknown>) => unknown,
  options: Partial<ReceiverOptions> = {},
): Promise<unknown[]> {
  const logger = recordingLogger();
  const receiver = receiverOf({ store: transactional(), logger, onSuccess, ...options });
  for (let count = 0; count < 3; count += 1) await receiver.receive(transferSucceeded());
  return logger.lines.filter(({ message }) => message.includes('`context.tx`'));
}

test('a handler that waits and never uses `tx` is named once, with what it costs', async () => {
  const code = 'HANDLER_WITHOUT_TX';
  expect(await findWarnings(() => pause(5))).toMatchObject([{ level: 'warn', details: { err: { code } } }]);
});

test('so is one that times out, as all do that wait for each other', async () => {
  expect(await findWarnings(() => pause(50), { handlerTimeoutMs: 10 })).toHaveLength(1);
});

test.each<[string, Parameters<typeof findWarnings>]>([
  ['has used `tx`', [async (_callback, { tx }) => pause(5, tx)]],
  ['has used it after a while', [async (_callback, context) => pause(5).then(() => context.tx)]],
  ['waits for nothing', [() => Promise.resolve()]],
  ['has failed', [() => pause(5).then(() => Promise.reject(new Error('the ledger is closed')))]],
  [
    'asks to be called later',
    [() => pause(5).then(() => Promise.reject(new RetryLater('the payout is not there yet')))],
  ],
  ['is given none', [() => pause(5), { store: memoryStore() }]],
])('a handler that %s is not named', async (_what, given) => {
  expect(await findWarnings(...given)).toEqual([]);
});
