import { memoryStore, type Logger } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { expect, test, vi } from 'vitest';
import type { ForgottenCallback } from '../../src/core/forget.js';
import { recordingLogger } from '../support/helpers/logger.js';
import { containing } from '../support/helpers/containing.js';
import { later, receiverOf } from './support.js';
import { listen } from '../support/helpers/listen.js';
import { announced, factsOf, reversingReceiver, type Status } from '../support/helpers/reversing.js';

const id = 'payout';
const success = transferSucceeded({ id, externalId: 'mine' });
const why = { by: 'ana@example.com', reason: 'The ledger was restored from yesterday.' };
/** What `inspect` shows of the success, and why it is forgotten. */
const seen = { fingerprint: '["SUCCESS",15000,"XAF","mine"]', ...why };

test('forget lets the next delivery run the handler again, with a line before and after, and tells its channel', async () => {
  const published: unknown[] = [];
  listen('transfer-callbacks:forgotten', (message) => published.push(message));
  const logger = recordingLogger();
  const onSuccess = vi.fn();
  const store = memoryStore();
  const delivery = 'a';
  // As other stores do, it knows the delivery whose handler had succeeded.
  const read = async (key: string) => ({ ...(await store.read(key)), delivery });
  const receiver = receiverOf({ store: { ...store, read }, logger, onSuccess });
  await receiver.receive(success);
  expect(await receiver.forget(id, seen)).toBe(true);
  const facts = { status: 'SUCCESS', amount: 15_000, currency: 'XAF', externalId: 'mine' };
  const details: ForgottenCallback = { delivery, id, recorded: facts, ...why };
  expect(logger.lines).toEqual([
    { level: 'warn', message: 'A handled callback is about to be forgotten.', details },
    { level: 'warn', message: 'A handled callback was forgotten; its next delivery runs the handler.', details },
  ]);
  expect(published).toEqual([details]);
  expect(await receiver.receive(success)).toMatchObject({ outcome: 'processed' });
  expect(onSuccess).toHaveBeenCalledTimes(2);
});

test('forget keeps a claim, and a record that differs from the one that was seen', async () => {
  const logger = recordingLogger();
  const ends = later();
  const receiver = receiverOf({ logger, onFailed: () => ends.promise });
  await receiver.receive(success);
  expect(await receiver.forget(id, { fingerprint: '["FAILED",1,"XAF","x"]', ...why })).toBe(false);
  expect(await receiver.forget('unknown', { fingerprint: '[]', ...why })).toBe(false);
  expect(await receiver.inspect(id)).toMatchObject({ state: 'handled' });

  const running = receiver.receive(transferFailed({ id: 'running' }));
  await vi.waitUntil(async () => (await receiver.inspect('running')).state === 'claimed');
  expect(await receiver.forget('running', { fingerprint: '[]', ...why })).toBe(false);
  expect(await receiver.inspect('running')).toMatchObject({ state: 'claimed' });
  ends.resolve();
  await running;
  expect(logger.lines).toEqual([]);
});

test('forget logs it if the record has changed between its look and its deletion', async () => {
  const published = vi.fn();
  listen('transfer-callbacks:forgotten', published);
  const logger = recordingLogger();
  // A store in JavaScript may resolve with any value.
  for (const reply of [false, undefined, 'no']) {
    const forget = () => Promise.resolve(reply as boolean);
    const receiver = receiverOf({ store: { ...memoryStore(), forget }, logger });
    await receiver.receive(success);
    expect(await receiver.forget(id, seen)).toBe(false);
    expect(logger.lines.at(-1)?.message).toBe('A handled callback was not forgotten: its record has changed.');
  }
  expect(published).not.toHaveBeenCalled();
});

test('forget takes both records of a failure, and one of a reversed success, and logs which one stays', async () => {
  const logger = recordingLogger();
  const { receiver } = reversingReceiver(memoryStore(), { logger });
  const receive = async (status: Status) => (await receiver.receive(announced(status, id))).outcome;
  const forget = async (status: Status) => {
    expect(await receiver.forget(id, { fingerprint: factsOf(status, id), ...why })).toBe(true);
    const { recorded, records, stays } = logger.lines.at(-1)?.details as Partial<ForgottenCallback>;
    return [recorded?.status, records, stays?.status];
  };
  await receive('FAILED');
  expect(await forget('FAILED')).toEqual(['FAILED', ['transfer', 'reversal'], undefined]);
  for (const status of ['SUCCESS', 'REVERSED'] as const) expect(await receive(status)).toBe('processed');
  expect(await forget('SUCCESS')).toEqual(['SUCCESS', ['transfer'], 'REVERSED']);
  expect(await receive('REVERSED')).toBe('duplicate');
  expect(await receive('SUCCESS')).toBe('processed');
  expect(await forget('REVERSED')).toEqual(['REVERSED', ['reversal'], 'SUCCESS']);
  expect(await receive('REVERSED')).toBe('processed');
});

test.each<[string, Logger | false, object]>([
  ['rejects', { warn: () => Promise.reject(new Error('disk full')), error: () => undefined }, { message: 'disk full' }],
  [
    'is missing',
    false,
    { message: 'Expected `logger` to be a logger, because `forget` must leave a trace, got false.' },
  ],
])('forget keeps the record if the logger %s', async (_name, logger, error) => {
  const receiver = receiverOf({ logger });
  await receiver.receive(success);
  await expect(receiver.forget(id, seen)).rejects.toMatchObject(error);
  expect(await receiver.inspect(id)).toMatchObject({ state: 'handled' });
});

test('forget reports a store that fails: the record may be gone', async () => {
  const logger = recordingLogger();
  const forget = (): Promise<boolean> => Promise.reject(new Error('down'));
  const receiver = receiverOf({ store: { ...memoryStore(), forget }, logger });
  await receiver.receive(success);
  await expect(receiver.forget(id, seen)).rejects.toThrow('down');
  expect(logger.lines.at(-1)).toMatchObject({
    level: 'error',
    message: 'A handled callback may have been forgotten: the store failed.',
    details: { id, ...why, err: { message: 'down' } },
  });
});

test.each([{ fingerprint: '' }, { by: ' ' }, { reason: undefined }])('forget refuses %j', async (wrong) => {
  await expect(receiverOf().forget(id, { ...seen, ...wrong } as typeof seen)).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: containing(`Expected \`${Object.keys(wrong).join()}\` to be a string that is not empty`),
  });
});

test('forget is refused for an id that is none, an unknown option, and a store without `forget`', async () => {
  const receiver = receiverOf({ store: { claim: memoryStore().claim } });
  await expect(receiver.forget('', seen)).rejects.toMatchObject({ option: 'id' });
  const unknown = { ...seen, force: true };
  await expect(receiver.forget(id, unknown)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  await expect(receiver.forget(id, seen)).rejects.toMatchObject({
    code: 'STORE_UNSUPPORTED',
    message: containing('Expected `store` to have `forget`; this store has none.'),
  });
});
