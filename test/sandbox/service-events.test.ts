import { describe, expect, test } from 'vitest';
import { transferCallbackSchema } from 'transfer-callbacks';
import { freePort } from '../support/port.js';
import { announce, course, create, longEnoughMs, query, startMerchant, startSandbox } from './support.js';

// Compares the sandbox with section 6 of the service's documentation. The other sections: service.test.ts.

describe('service §6, events', () => {
  test('§6: transfer.success announces SUCCESS, transfer.failed announces FAILED', async () => {
    const events = [];
    for (const externalId of ['success-1', 'failed-1']) {
      const { callbacks } = await announce({ externalId });
      events.push(callbacks.map(({ event, data }) => [event, data.status]));
    }
    expect(events).toEqual([[['transfer.success', 'SUCCESS']], [['transfer.failed', 'FAILED']]]);
  });

  test('§6.1: the first attempt is made at the moment of the final status, not before', async () => {
    const { url, received } = await startMerchant();
    const sandbox = await startSandbox({ clock: 'manual', finalAfterMs: 5_000 });
    await create(sandbox, { callbackUrl: url });
    await sandbox.advance(4_999);
    expect(received).toEqual([]);
    await sandbox.advance(1);
    expect(received).toHaveLength(1);
    expect(sandbox.attempts[0]?.sentAtMs).toBe(sandbox.transfers()[0]?.finalAtMs);
  });

  test('§6.2: every attempt, and a resend, carries the same bytes', async () => {
    const { sandbox, bodies } = await announce({ externalId: 'one' }, [500, 500, 500, 500]);
    await sandbox.resend('one');
    expect(bodies()).toHaveLength(5);
    expect(new Set(bodies()).size).toBe(1);
  });

  test('§6.3: without 2xx there are 4 attempts, the first retry 30 s after the first', async () => {
    const { sandbox } = await announce({}, [500, 302, 404, 503]);
    expect(course(sandbox)).toEqual([
      [0, 1, 500],
      [30, 2, 302],
      [90, 3, 404],
      [210, 4, 503],
    ]);
    expect(sandbox.transfers()).toMatchObject([{ delivered: false, next: undefined }]);
  });

  test('§6.3: an endpoint that is unreachable gets 4 attempts', async () => {
    const sandbox = await startSandbox({ clock: 'manual', callbackUrl: `http://127.0.0.1:${await freePort()}/` });
    await create(sandbox, {});
    await sandbox.advance(longEnoughMs);
    expect(sandbox.attempts.map(({ number }) => number)).toEqual([1, 2, 3, 4]);
    for (const { response } of sandbox.attempts)
      expect(response).toMatchObject({ error: expect.any(String) as string });
  });

  test('§6.3: an endpoint that drops the connection gets 4 attempts', async () => {
    const { url, received } = await startMerchant((_received, _count, response) => response.destroy());
    const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url });
    await create(sandbox, {});
    await sandbox.advance(longEnoughMs);
    expect(received).toHaveLength(4);
  });

  test('§6.5: if no callback arrives, a query shows the outcome, in the fields of a callback', async () => {
    const { sandbox, received } = await announce({ externalId: 'no-callback-1' });
    expect(received).toEqual([]);
    const { body } = await query(sandbox, 'no-callback-1');
    expect(transferCallbackSchema.parse({ event: 'transfer.success', data: body.data }).data).toEqual(body.data);
  });

  test('§6.7: a callback carries no signature and no credentials', async () => {
    const { received } = await announce({});
    expect(Object.keys(received[0]?.headers ?? {}).sort()).toEqual([
      ...['connection', 'content-length', 'content-type', 'host'],
    ]);
  });
});
