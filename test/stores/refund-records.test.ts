import { describe, expect, test } from 'vitest';
import { recordingLogger } from '../support/helpers/logger.js';
import { announced, reversingReceiver, type Status } from '../support/helpers/reversing.js';
import { receivingAs, startStoresForFile } from './refund-support.js';

const { stores } = startStoresForFile();

const why = { by: 'ana@example.com', reason: 'a test' };

describe.each(stores)('on %s', (_name, makeStore) => {
  let id: string;
  const setUp = (options: Parameters<typeof reversingReceiver>[1] = {}) => {
    id = crypto.randomUUID();
    const store = makeStore();
    return { store, ...receivingAs(id, store, options) };
  };

  test('forget takes the record that was seen, and logs which one stays', async () => {
    const logger = recordingLogger();
    const { receiver, ran, receive } = setUp({ logger });
    for (const status of ['SUCCESS', 'REVERSED'] as const) await receive(status);
    const fingerprintOf = (status: Status) => JSON.stringify([status, 100, 'XAF', `payout-${id}`]);
    expect(await receiver.forget(id, { fingerprint: fingerprintOf('FAILED'), ...why })).toBe(false);
    expect(await receiver.forget(id, { fingerprint: fingerprintOf('SUCCESS'), ...why })).toBe(true);
    expect(logger.lines.at(-1)?.details).toMatchObject({
      id,
      recorded: { status: 'SUCCESS' },
      stays: { status: 'REVERSED' },
    });
    expect(await receive('REVERSED')).toBe('duplicate');
    expect(await receive('SUCCESS')).toBe('processed');
    expect(await receiver.forget(id, { fingerprint: fingerprintOf('REVERSED'), ...why })).toBe(true);
    expect(logger.lines.at(-1)?.details).toMatchObject({
      recorded: { status: 'REVERSED' },
      stays: { status: 'SUCCESS' },
    });
    expect(await receive('REVERSED')).toBe('processed');
    expect(ran).toHaveLength(4);
  });

  test('a failure is handled once both the success and its reversal are forgotten', async () => {
    const { receiver, ran, receive } = setUp({ logger: recordingLogger() });
    for (const status of ['SUCCESS', 'REVERSED'] as const) await receive(status);
    for (const status of ['SUCCESS', 'REVERSED'] as const) {
      const fingerprint = JSON.stringify([status, 100, 'XAF', `payout-${id}`]);
      expect(await receiver.forget(id, { fingerprint, ...why })).toBe(true);
    }
    expect(await receive('FAILED')).toBe('processed');
    expect(ran).toHaveLength(3);
  });

  test('a failure that is forgotten is handled again, because both of its records end, and the log names both', async () => {
    const logger = recordingLogger();
    const { receiver, ran, receive } = setUp({ logger });
    expect(await receive('FAILED')).toBe('processed');
    const fingerprint = JSON.stringify(['FAILED', 100, 'XAF', `payout-${id}`]);
    expect(await receiver.forget(id, { fingerprint, ...why })).toBe(true);
    expect(logger.lines.at(-1)?.details).toMatchObject({ id, records: ['transfer', 'reversal'] });
    expect(await receiver.inspect(id)).toEqual({ state: 'free' });
    expect(await receive('FAILED')).toBe('processed');
    expect(ran).toHaveLength(2);
  });

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
    const { store, ran, receive } = setUp();
    const fingerprint = JSON.stringify(['FAILED', 100, 'XAF', `payout-${id}`]);
    const claimed = await store.claim(id, { token: 'earlier', fingerprint, leaseMs: 1_000, retentionMs: 100_000 });
    if (claimed.state === 'claimed') await claimed.claim.settle();
    expect(await receive('FAILED')).toBe('duplicate');
    expect(await receive('REVERSED')).toBe('duplicate of FAILED');
    expect(await receive('SUCCESS')).toBe('conflict');
    expect(ran).toEqual([]);
  });

  test('a reversal whose handler has failed is handled when its next callback has a fact more', async () => {
    let calls = 0;
    const { ran, receive } = setUp({
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
    const { receiver, ran, receive } = setUp({
      logger: recordingLogger(),
      handle(status) {
        if (status === 'REVERSED') throw new Error('down');
      },
    });
    await receive('SUCCESS');
    expect(await receive('REVERSED')).toBe('handler_failed');
    const fingerprint = JSON.stringify(['SUCCESS', 100, 'XAF', `payout-${id}`]);
    expect(await receiver.forget(id, { fingerprint, ...why })).toBe(true);
    expect(await receive('FAILED')).toBe('processed');
    expect(ran).toEqual([`SUCCESS ${id}`, `FAILED ${id}`]);
  });

  test('check claims both records, and leaves none', async () => {
    const { store, receiver } = setUp();
    const claims: unknown[] = [];
    const checked = reversingReceiver({
      ...store,
      claim: (key, request) => {
        claims.push(request.record);
        return store.claim(key, request);
      },
    });
    expect(await checked.receiver.check()).toMatchObject({ ok: true });
    expect(new Set(claims)).toEqual(new Set(store.claimsBoth === true ? ['both'] : ['reversal', undefined]));
    await Promise.all([checked.receiver.close(), receiver.close()]);
  });

  test('a reversal that came first is handled again once it is forgotten', async () => {
    const logger = recordingLogger();
    const { receiver, receive } = setUp({ logger });
    await receive('REVERSED');
    const record = await receiver.inspect(id);
    if (record.state !== 'handled') expect.fail(record.state);
    expect(record.reversal).toMatchObject({ state: 'handled', fingerprint: record.fingerprint });
    expect(await receiver.forget(id, { fingerprint: record.fingerprint, ...why })).toBe(true);
    expect(logger.lines.at(-1)?.details).not.toHaveProperty('stays');
    expect(await receiver.inspect(id)).toEqual({ state: 'free' });
    expect(await receive('REVERSED')).toBe('processed');
  });
});
