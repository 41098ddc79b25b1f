import { memoryStore, type Logger, type TransferCallbackReceiver } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { describe, expect, test, vi } from 'vitest';
import type { ForgottenCallback } from '../../src/core/forget.js';
import { recordingLogger } from '../support/helpers/logger.js';
import { containing } from '../support/helpers/containing.js';
import { later, receiverOf, storeWith } from './support.js';
import { listen } from '../support/helpers/listen.js';

describe('forget', () => {
  /** A callback that was handled, and the fingerprint that `inspect` shows of it. */
  async function settle(receiver: TransferCallbackReceiver): Promise<{ id: string; fingerprint: string }> {
    const id = 'payout';
    await receiver.receive(transferSucceeded({ id }));
    const record = await receiver.inspect(id);
    if (record.state !== 'handled') expect.fail();
    return { id, fingerprint: record.fingerprint };
  }

  const why = { by: 'ana@example.com', reason: 'The ledger was restored from yesterday.' };

  test('lets the next delivery run the handler again, with a line before and after, and tells its channel', async () => {
    const published: unknown[] = [];
    const note = (message: unknown): void => void published.push(message);
    listen('transfer-callbacks:forgotten', note);
    const logger = recordingLogger();
    const onSuccess = vi.fn();
    const store = memoryStore();
    const delivery = 'a';
    // As other stores do, it knows the delivery whose handler had succeeded.
    const read = async (key: string) => ({ ...(await store.read(key)), delivery });
    const receiver = receiverOf({ store: { ...store, read }, logger, onSuccess });
    const { id, fingerprint } = await settle(receiver);

    expect(await receiver.forget(id, { fingerprint, ...why })).toBe(true);

    const facts = { status: 'SUCCESS', amount: 15_000, currency: 'XAF', externalId: expect.any(String) as string };
    const details: ForgottenCallback = { delivery, id, recorded: facts, ...why };
    expect(logger.lines).toEqual([
      { level: 'warn', message: 'A handled callback is about to be forgotten.', details },
      {
        level: 'warn',
        message: 'A handled callback was forgotten; its next delivery runs the handler.',
        details,
      },
    ]);
    expect(published).toEqual([details]);
    expect(await receiver.receive(transferSucceeded({ id }))).toMatchObject({ outcome: 'processed' });
    expect(onSuccess).toHaveBeenCalledTimes(2);
  });

  test('forget keeps a claim, and a record that differs from the one that was seen', async () => {
    const logger = recordingLogger();
    const ends = later();
    const receiver = receiverOf({ logger, onFailed: () => ends.promise });
    const { id } = await settle(receiver);
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

  test('logs it if the record has changed between its look and its deletion', async () => {
    const published = vi.fn();
    listen('transfer-callbacks:forgotten', published);
    const logger = recordingLogger();
    // A store in JavaScript may resolve with any value.
    for (const reply of [false, undefined, 'no']) {
      const forget = () => Promise.resolve(reply as boolean);
      const receiver = receiverOf({ store: { ...memoryStore(), forget }, logger });
      const { id, fingerprint } = await settle(receiver);
      expect(await receiver.forget(id, { fingerprint, ...why })).toBe(false);
      expect(logger.lines.at(-1)?.message).toBe('A handled callback was not forgotten: its record has changed.');
    }
    expect(published).not.toHaveBeenCalled();
  });

  test('works with a store that has no `read`', async () => {
    const { claim, read, forget } = memoryStore();
    const { id, fingerprint } = await settle(receiverOf({ store: { claim, read } }));
    const logger = recordingLogger();
    expect(await receiverOf({ store: { claim, forget }, logger }).forget(id, { fingerprint, ...why })).toBe(true);
    expect(logger.lines[0]?.details).not.toHaveProperty('delivery');
  });

  test.each<[string, Logger | false, object]>([
    [
      'rejects',
      { warn: () => Promise.reject(new Error('disk full')), error: () => undefined },
      { message: 'disk full' },
    ],
    [
      'is missing',
      false,
      { message: 'Expected `logger` to be a logger, because `forget` must leave a trace, got false.' },
    ],
  ])('forgets nothing if the logger %s', async (_name, logger, error) => {
    const receiver = receiverOf({ logger });
    const { id, fingerprint } = await settle(receiver);
    await expect(receiver.forget(id, { fingerprint, ...why })).rejects.toMatchObject(error);
    expect(await receiver.inspect(id)).toMatchObject({ state: 'handled' });
  });

  test('reports a store that fails: the record may be gone', async () => {
    const logger = recordingLogger();
    const forget = (): Promise<boolean> => Promise.reject(new Error('down'));
    const receiver = receiverOf({ store: { ...memoryStore(), forget }, logger });
    const { id, fingerprint } = await settle(receiver);
    await expect(receiver.forget(id, { fingerprint, ...why })).rejects.toThrow('down');
    expect(logger.lines.at(-1)).toMatchObject({
      level: 'error',
      message: 'A handled callback may have been forgotten: the store failed.',
      details: { id, ...why, err: { message: 'down' } },
    });
  });

  test.each([
    ['fingerprint', { fingerprint: '' }],
    ['by', { by: ' ' }],
    ['reason', { reason: undefined }],
  ])('refuses an empty `%s`', async (name, wrong) => {
    const receiver = receiverOf();
    const options = { fingerprint: '[]', ...why, ...wrong } as Parameters<typeof receiver.forget>[1];
    await expect(receiver.forget('a', options)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining(`Expected \`${name}\` to be a string that is not empty`) as string,
    });
  });

  test('is refused for an id that is none, an unknown option, and a store without `forget`', async () => {
    const receiver = receiverOf({ store: storeWith({}) });
    const options = { fingerprint: '[]', ...why };
    await expect(receiver.forget('', options)).rejects.toMatchObject({ option: 'id' });
    const unknown = { ...options, force: true };
    await expect(receiver.forget('a', unknown)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(receiver.forget('a', options)).rejects.toMatchObject({
      code: 'STORE_UNSUPPORTED',
      message: containing('Expected `store` to have `forget`; this store has none.'),
    });
  });
});
