import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { memoryStore, type CallbackStore, type TransferCallbackOutcome } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { expect, onTestFinished, test, vi } from 'vitest';
import { recordingLogger } from '../support/logger.js';
import { later, receiverOf, storeWith } from './support.js';
import { parseDeliveryName } from '../../src/core/delivery.js';

/** A store that notes the tokens it is claimed with. */
function notingStore(): { store: CallbackStore; tokens: string[] } {
  const memory = memoryStore();
  const tokens: string[] = [];
  return {
    tokens,
    store: {
      claim(key, request) {
        tokens.push(request.token);
        return memory.claim(key, request);
      },
    },
  };
}

test('one name of a delivery is in the store, the contexts, the log line and the outcome, wherever it is published', async () => {
  const names: string[] = [];
  const note = (about: unknown): void => {
    names.push((about as { delivery: string }).delivery);
  };
  subscribe('transfer-callbacks:outcome', note);
  onTestFinished(() => {
    unsubscribe('transfer-callbacks:outcome', note);
  });
  const { store, tokens } = notingStore();
  const receiver = receiverOf({
    store,
    logger: { warn: note, error: note },
    onOutcome: note,
    confirm(callback, context) {
      note(context);
      return callback;
    },
    onSuccess(_callback, context) {
      note(context);
      throw new Error('no');
    },
  });
  const { delivery } = await receiver.receive(transferSucceeded());
  expect(names).toEqual(new Array(5).fill(delivery));
  expect(tokens).toEqual([delivery]);
  expect(parseDeliveryName(delivery)).toMatchObject({ pid: process.pid });
});

test('every delivery has its own name, whatever becomes of it', async () => {
  const receiver = receiverOf();
  const callback = transferSucceeded();
  const ended: TransferCallbackOutcome[] = [];
  ended.push(await receiver.receive(callback), await receiver.receive(callback), await receiver.receive('nonsense'));
  ended.push(await receiver.receive(callback, { verify: () => false }));
  await receiver.close();
  ended.push(await receiver.receive(callback));
  expect(ended.map(({ outcome }) => outcome)).toEqual(['processed', 'duplicate', 'invalid', 'unauthorized', 'closing']);
  expect(new Set(ended.map(({ delivery }) => delivery)).size).toBe(ended.length);
});

test('a claim under a running handler is a second claim of the same delivery', async () => {
  const memory = memoryStore();
  const tokens = new Set<string>();
  let hasBegun = false;
  const ends = later();
  const logger = recordingLogger();
  const receiver = receiverOf({
    storeTimeoutMs: 10,
    leaseMs: 31,
    logger,
    store: storeWith({
      claim(key, request) {
        tokens.add(request.token);
        return memory.claim(key, request);
      },
      // The store loses its memory of the claim that the handler runs under.
      granted: (claim) => ({
        async renew() {
          if (!hasBegun || tokens.size > 1) return claim.renew();
          await claim.release();
          return false;
        },
      }),
    }),
    onSuccess() {
      hasBegun = true;
      return ends.promise;
    },
  });
  const delivery = receiver.receive(transferSucceeded());
  await vi.waitUntil(() => logger.lines.length > 0);
  ends.resolve();
  const { outcome, delivery: name } = await delivery;
  expect(outcome).toBe('processed');
  expect([...tokens].slice(0, 2)).toEqual([name, `${name}.2`]);
  expect(parseDeliveryName(`${name}.2`)).toEqual(parseDeliveryName(name));
  expect(logger.lines[0]?.details).toMatchObject({ delivery: name });
});

test('the log line of a throwing `onOutcome` names the delivery', async () => {
  const logger = recordingLogger();
  const receiver = receiverOf({
    logger,
    onOutcome: () => {
      throw new Error('no');
    },
  });
  const { delivery, id } = await receiver.receive(transferSucceeded());
  await vi.waitUntil(() => logger.lines.length > 0);
  expect(logger.lines).toEqual([
    { level: 'error', message: '`onOutcome` threw.', details: { delivery, id, err: expect.anything() as unknown } },
  ]);
});
