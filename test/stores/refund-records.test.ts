import { describe, expect, test, vi } from 'vitest';
import { recordingLogger } from '../support/helpers/logger.js';
import { announced, factsOf, reversingReceiver, type Status } from '../support/helpers/reversing.js';
import { makeTransfer, startStoresForFile } from './refund-support.js';
import { claimFree } from './support.js';

const { stores } = startStoresForFile();

const why = { by: 'ana@example.com', reason: 'a test' };

describe.each(stores)('on %s', (_name, makeStore) => {
  test('forget takes the record that was seen, and logs which one stays', async () => {
    const logger = recordingLogger();
    const { id, receiver, ran, receive } = makeTransfer(makeStore(), { logger });
    for (const status of ['SUCCESS', 'REVERSED'] as const) await receive(status);
    expect(await receiver.forget(id, { fingerprint: factsOf('FAILED', id), ...why })).toBe(false);
    expect(await receiver.forget(id, { fingerprint: factsOf('SUCCESS', id), ...why })).toBe(true);
    expect(logger.lines.at(-1)?.details).toMatchObject({
      id,
      recorded: { status: 'SUCCESS' },
      stays: { status: 'REVERSED' },
    });
    expect(await receive('REVERSED')).toBe('duplicate');
    expect(await receive('SUCCESS')).toBe('processed');
    expect(await receiver.forget(id, { fingerprint: factsOf('REVERSED', id), ...why })).toBe(true);
    expect(logger.lines.at(-1)?.details).toMatchObject({
      recorded: { status: 'REVERSED' },
      stays: { status: 'SUCCESS' },
    });
    expect(await receive('REVERSED')).toBe('processed');
    expect(ran).toHaveLength(4);
  });

  test.each<Status>(['FAILED', 'REVERSED'])(
    'a callback of %s that is forgotten is handled again, because both of its records end, and the log names both',
    async (status) => {
      const logger = recordingLogger();
      const { id, receiver, ran, receive } = makeTransfer(makeStore(), { logger });
      expect(await receive(status)).toBe('processed');
      const fingerprint = factsOf(status, id);
      const handled = { state: 'handled', fingerprint };
      expect(await receiver.inspect(id)).toMatchObject({ ...handled, reversal: handled });
      expect(await receiver.forget(id, { fingerprint, ...why })).toBe(true);
      expect(logger.lines.at(-1)?.details).toMatchObject({ id, records: ['transfer', 'reversal'] });
      expect(logger.lines.at(-1)?.details).not.toHaveProperty('stays');
      expect(await receiver.inspect(id)).toEqual({ state: 'free' });
      expect(await receive(status)).toBe('processed');
      expect(ran).toHaveLength(2);
    },
  );

  test('two wrappers that prefix the keys of one store share no refund', async () => {
    const shared = makeStore();
    const transfer = crypto.randomUUID();
    for (const tenant of ['a', 'b']) {
      const { receiver, ran } = reversingReceiver({
        ...shared,
        claim: (key, request) => shared.claim(`${tenant}:${key}`, request),
      });
      expect(await receiver.receive(announced('FAILED', transfer))).toMatchObject({ outcome: 'processed' });
      expect(await receiver.receive(announced('REVERSED', transfer))).toMatchObject({ outcome: 'duplicate' });
      expect(ran).toEqual([`FAILED ${transfer}`]);
      await receiver.close();
    }
  });

  test('a failure that has the record of its transfer alone, as of an app without onReversed, is not handled again', async () => {
    const { id, store, ran, receive } = makeTransfer(makeStore());
    await (await claimFree(store, { fingerprint: factsOf('FAILED', id) }, id)).settle();
    expect(await receive('FAILED')).toBe('duplicate');
    expect(await receive('REVERSED')).toBe('duplicate of FAILED');
    expect(await receive('SUCCESS')).toBe('conflict');
    expect(ran).toEqual([]);
  });

  test('a reversal whose handler has failed is handled when its next callback has a fact more', async () => {
    let calls = 0;
    const { id, ran, receive } = makeTransfer(makeStore(), {
      handle(status) {
        if (status === 'REVERSED' && (calls += 1) === 1) throw new Error('down');
      },
    });
    await receive('SUCCESS');
    expect(await receive('REVERSED', { amount: undefined, currency: undefined })).toBe('handler_failed');
    expect(await receive('REVERSED')).toBe('processed');
    expect(ran).toEqual([`SUCCESS ${id}`, `REVERSED ${id}`]);
  });

  test('a failure is handled once a success is forgotten whose reversal has failed', async () => {
    const { id, receiver, ran, receive } = makeTransfer(makeStore(), {
      logger: recordingLogger(),
      handle(status) {
        if (status === 'REVERSED') throw new Error('down');
      },
    });
    await receive('SUCCESS');
    expect(await receive('REVERSED')).toBe('handler_failed');
    expect(await receiver.forget(id, { fingerprint: factsOf('SUCCESS', id), ...why })).toBe(true);
    expect(await receive('FAILED')).toBe('processed');
    expect(ran).toEqual([`SUCCESS ${id}`, `FAILED ${id}`]);
  });

  test('check claims both records, and leaves none', async () => {
    const store = makeStore();
    const claim = vi.spyOn(store, 'claim');
    expect(await reversingReceiver(store).receiver.check()).toMatchObject({ ok: true });
    const records = claim.mock.calls.map(([, { record }]) => record);
    expect(new Set(records)).toEqual(new Set(store.claimsBoth === true ? ['both'] : ['reversal', undefined]));
    const key = String(claim.mock.lastCall?.[0]);
    expect([await store.read(key), await store.read(key, 'reversal')]).toEqual([{ state: 'free' }, { state: 'free' }]);
  });
});
