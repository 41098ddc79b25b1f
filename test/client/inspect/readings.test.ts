import { getEventListeners } from 'node:events';
import { describe, expect, test, vi } from 'vitest';
import type { CallbackStore, transferCallbackSchema } from 'transfer-callbacks';
import { inspectTransfer, transferService } from 'transfer-callbacks/client';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { z } from 'zod';
import { documentedService } from '../../../src/core/documented.js';
import { fakeClock, receiverOf } from '../../core/support.js';
import { freePort } from '../../support/servers/port.js';
import { serveForTest } from '../../support/servers/serve-for-test.js';
import { containing } from '../../support/helpers/containing.js';
import { serviceOf, startService } from '../support.js';

/** The callback of the transfer that `inspectWith` asks about. */
const callback = transferSucceeded({
  id: 'tr-1',
  externalId: 'payout-1',
  amount: 5,
  timestamp: new Date().toISOString(),
});

/** The facts of this callback, as the record of a store has them. */
const record = '["SUCCESS",5,"XAF","payout-1"]';
const handled = { state: 'handled', fingerprint: record } as const;

/** Inspects a transfer where the service responds with `data` and the store has this record. */
function inspectWith(
  data: object,
  found: Awaited<ReturnType<NonNullable<CallbackStore['read']>>>,
  changes: object = {},
) {
  const { service, store, retentionMs, ...options } = changes as Partial<Record<string, object>>;
  const known = serviceOf({ getTransaction: () => Promise.resolve({ ...callback.data, ...data }) });
  const read = () => Promise.resolve(found);
  const given: object = { service: service ?? known, store: { claim: read, read, ...store }, retentionMs };
  return inspectTransfer({ id: 'tr-1', receiver: receiverOf(given), ...options });
}

describe('what is compared', () => {
  test('an inspection compares every fact that the service reports with the record', async () => {
    const long = 'x'.repeat(300);
    const cases: [what: string, data: object, fingerprint: string, verdict: string][] = [
      ['the same facts', {}, record, 'handled'],
      ['another amount', { amount: 6 }, record, 'conflict'],
      ['the amount as text', { amount: '5.00' }, record, 'handled'],
      ['the amount as another text', { amount: '5.00' }, '["SUCCESS","5.0","XAF","payout-1"]', 'handled'],
      ['another amount as text', { amount: '5.01' }, record, 'conflict'],
      ['another status, with the amount as text', { amount: '5.00', status: 'FAILED' }, record, 'conflict'],
      ['an amount that is no text of a number', { amount: '' }, record, 'conflict'],
      ['a null amount', { amount: null }, '["SUCCESS",0,"XAF","payout-1"]', 'conflict'],
      ['an empty amount, where the record has 0', { amount: '' }, '["SUCCESS",0,"XAF","payout-1"]', 'conflict'],
      [
        'an amount of 0, where that of the record is empty',
        { amount: 0 },
        '["SUCCESS","","XAF","payout-1"]',
        'conflict',
      ],
      ['another amount, where the record has text', { amount: 5 }, '["SUCCESS","6","XAF","payout-1"]', 'conflict'],
      ['an externalId that is the same number', { externalId: '01' }, '["SUCCESS",5,"XAF",1]', 'conflict'],
      ['another currency', { currency: 'XOF' }, record, 'conflict'],
      ['another status', { status: 'FAILED' }, record, 'conflict'],
      ['another externalId', { externalId: 'payout-2' }, record, 'conflict'],
      ['facts that the service leaves out', { amount: undefined, currency: undefined }, record, 'handled'],
      ['facts that the callback of another service left out', {}, '["SUCCESS",null,null,"payout-1"]', 'handled'],
      ['a list without facts', {}, '[]', 'conflict'],
      ['a record without externalId', {}, '["SUCCESS",5,"XAF",null]', 'conflict'],
      ['long text', { externalId: long }, JSON.stringify(['SUCCESS', 5, 'XAF', long]), 'handled'],
      ['text that turns the line', { currency: '\u202e' }, '["SUCCESS",5,"\u202e","payout-1"]', 'handled'],
      ['a record that cannot be read as facts', {}, 'facts of a store of your own', 'undecided'],
    ];
    for (const [what, data, fingerprint, verdict] of cases) {
      const inspection = await inspectWith(data, { state: 'handled', fingerprint });
      expect(inspection.verdict, what).toBe(verdict);
      const meaning = {
        handled: /^The handler has succeeded, for the facts that/,
        conflict: /^The handler has succeeded, for other facts than/,
        undecided: /^The handler has succeeded, but the facts in its record cannot be read\./,
      }[verdict];
      expect(inspection.meaning, what).toMatch(meaning ?? expect.fail(verdict));
    }
  });

  test('is what the schema of the receiver makes of the transfer', async () => {
    const schema = z.discriminatedUnion('event', [
      z.object({
        event: z.literal('transfer.success'),
        data: z.object({
          ...{ id: z.string(), externalId: z.string(), currency: z.string(), status: z.literal('SUCCESS') },
          amount: z.string().transform(parseFloat),
        }),
      }),
    ]);
    expect((await inspectWith({ amount: '5.00 XAF' }, handled)).verdict).toBe('conflict');
    const { readCallback } = transferService({ payload: schema as unknown as typeof transferCallbackSchema });
    const inspect = (amount: unknown) => {
      const known = serviceOf({ getTransaction: () => Promise.resolve({ ...callback.data, amount }) });
      return inspectWith({}, handled, { service: { ...known, readCallback } });
    };
    expect((await inspect('5.00 XAF')).verdict).toBe('handled');
    expect((await inspect(5)).verdict).toBe('handled'); // It does not fit the schema.
  });

  test('a transfer that is final at an unknown time has none', async () => {
    for (const timestamp of [undefined, 'soon', 5]) {
      expect(await inspectWith({ timestamp }, { state: 'free' })).toMatchObject({ service: { finalAt: undefined } });
    }
  });

  test('a transfer that becomes final between the two readings is not called unfounded', async () => {
    const statuses = ['PENDING', 'SUCCESS'];
    const getTransaction = vi.fn(() => Promise.resolve({ ...callback.data, status: statuses.shift() ?? '' }));
    expect(await inspectWith({}, handled, { service: serviceOf({ getTransaction }) })).toMatchObject({
      verdict: 'handled',
      service: { state: 'final' },
    });
    expect(getTransaction).toHaveBeenCalledTimes(2);
    statuses.push('SUCCESS');
    expect((await inspectWith({}, handled, { service: serviceOf({ getTransaction }) })).verdict).toBe('handled');
    expect(getTransaction).toHaveBeenCalledTimes(3);
  });
});

describe('what is read', () => {
  test('a claim is advised with its holder and its lease, as far as it tells them', async () => {
    const claimed = { state: 'claimed', by: 'payouts-7f9c, process 41', leaseLeftMs: 11_500 } as const;
    expect(await inspectWith({ status: 'PENDING' }, claimed)).toMatchObject({
      verdict: 'in_progress',
      record: claimed,
      meaning: 'A delivery is being handled by payouts-7f9c, process 41.',
      advice: 'Wait 12 s, and inspect it again. If its holder has died, the claim is free by then.',
    });
    expect(await inspectWith({ status: 'PENDING' }, { state: 'claimed' })).toMatchObject({
      meaning: 'A delivery is being handled.',
      advice: 'Wait, and inspect it again. If its holder has died, the claim becomes free by itself.',
    });
  });

  test('one half is enough to ask, and not to conclude', async () => {
    const cannotBeAsked = documentedService;
    expect(await inspectWith({}, { state: 'free' }, { service: cannotBeAsked })).toMatchObject({
      verdict: 'undecided',
      service: { state: 'unread', error: undefined },
      record: { state: 'free' },
      meaning: 'Nothing can be concluded: the service was not read.',
    });
    const receiver = { inspect: () => Promise.resolve({ state: 'free' as const }) };
    expect(await inspectTransfer({ id: 'tr-1', receiver })).toMatchObject({ record: { state: 'free' } });
  });

  test('a service that cannot be read is named with its address and the reason, and with what to check', async () => {
    const [closed, silent] = [await freePort(), await serveForTest(() => undefined)];
    const refusing = await serveForTest((_request, response) => response.writeHead(400).end());
    const cases: [baseUrl: string, why: string | RegExp, check: string][] = [
      ['http://no.such.invalid/api', /: getaddrinfo (?:ENOTFOUND|EAI_AGAIN) no\.such\.invalid\. /, 'and DNS.'],
      [`http://127.0.0.1:${closed}`, `: connect ECONNREFUSED 127.0.0.1:${closed}. `, 'may connect to it.'],
      [refusing.replace('http', 'https'), /: .*SSL.*\. /, 'begins with http or https'],
      [silent, ' within 500 ms. ', 'may connect to it.'],
      [refusing, ' refused: 400.', 'Check the API key and its secret: 400 can mean api key invalid, api secret'],
    ];
    await Promise.all(
      cases.map(async ([baseUrl, why, check]) => {
        const asked = transferService({ baseUrl, apiKey: 'the-key', apiSecret: 'the-secret', timeoutMs: 500 });
        const { service, advice } = await inspectWith({}, { state: 'free' }, { service: asked });
        if (service.state !== 'unread') expect.fail(service.state);
        expect(service.error?.message).toContain(new URL(baseUrl).origin);
        expect(service.error?.message).toMatch(why);
        expect(advice).toContain(check);
        expect(advice).toMatch(/Inspect it again when both can be read\./);
      }),
    );
  });

  test('a check is advised only where it may help', async () => {
    const checkStore = 'Check that the store can be reached, and that it is the one of your app.';
    const again = `${checkStore} Inspect it again when both can be read.`;
    const responding = async (status: number): Promise<object> => (await startService([[status, '']])).client;
    const unread = { read: () => Promise.reject(new Error('down')) };
    const cases: [what: string, options: object, advice: string][] = [
      ['a service that is busy', { service: await responding(503), store: unread }, again],
      ['a refusal that is not of the key', { service: await responding(422), store: unread }, again],
      ['a 404, which the service may mean', { service: await responding(404), store: unread }, again],
      ['an id that is not sent', { service: await responding(404), id: 'a/b', store: unread }, again],
      [
        'a record that was read',
        { service: await responding(503) },
        'Inspect it again when both can be read. Until then the record is that of the given id, and counts only if that is the id of the service.',
      ],
      [
        'a service that gives no reason',
        // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- JavaScript may.
        { service: serviceOf({ getTransaction: () => Promise.reject(undefined) }), store: unread },
        `Check the address of the service, and whether this machine may connect to it. ${again}`,
      ],
    ];
    for (const [what, options, advice] of cases) {
      const inspection = await inspectWith({}, { state: 'free' }, options);
      expect(inspection, what).toMatchObject({ verdict: 'undecided', advice });
    }
  });

  test('a transfer that the service responds with 404 for is unknown, and undecided once it was handled', async () => {
    const { client } = await startService([[404, '']]);
    const inspect = (found: Parameters<typeof inspectWith>[1]) => inspectWith({}, found, { service: client });
    expect(await inspect({ state: 'free' })).toMatchObject({
      verdict: 'unknown',
      service: { state: 'unknown', error: { status: 404 } },
      recordId: 'tr-1',
      advice: containing('Do not conclude that the transfer has failed'),
    });
    // The address may be wrong.
    expect(await inspect(handled)).toMatchObject({
      verdict: 'undecided',
      service: { state: 'unknown' },
      meaning: 'The handler has succeeded, but the service responded with 404.',
      advice: expect.stringMatching(/^Check the address and the API key of the service first/) as string,
    });
  });

  test('a receiver is waited for as long as it waits for its store', async () => {
    fakeClock();
    const store = { claim: vi.fn(), read: () => new Promise<never>(() => undefined) };
    const receiver = receiverOf({ store, storeTimeoutMs: 4_000 });
    const inspection = inspectTransfer({ id: 'tr-1', receiver });
    await vi.advanceTimersByTimeAsync(4_050);
    expect((await inspection).record).toMatchObject({ error: { message: containing('within 4000 ms.') } });
  });

  test('a receiver of your own that resolves with no record has none that could be read', async () => {
    const broken = { state: 'handled', fingerprint: 5 };
    for (const record of [undefined, { state: 'what' }, broken, { state: 'free', reversal: broken }]) {
      const receiver = { inspect: () => Promise.resolve(record) };
      expect(await inspectWith({}, { state: 'free' }, { receiver })).toMatchObject({
        verdict: 'undecided',
        record: { state: 'unread', error: { message: containing('Expected `store.read` to resolve with a record') } },
      });
    }
  });

  test.each(['service', 'store'])('an abort while the %s is read rejects with its reason', async (half) => {
    const controller = new AbortController();
    const never = () => {
      setImmediate(() => {
        controller.abort(new Error('the pod is leaving'));
      });
      return new Promise<never>(() => undefined);
    };
    const service = serviceOf({
      async getTransaction(_id, { signal }) {
        await Promise.race([never(), new Promise((resolve) => (signal.onabort = resolve))]);
        throw signal.reason;
      },
    });
    const halves = half === 'service' ? { service } : { receiver: { inspect: never } };
    const inspection = inspectWith({}, { state: 'free' }, { ...halves, signal: controller.signal });
    await expect(inspection).rejects.toThrow('the pod is leaving');
  });
});

test('a status that reads as final calls for a translation, and is no proof of a forgery', async () => {
  const words = 'the service reports the status SUCCESSFUL, which is not final.';
  const open = await inspectWith({ status: 'SUCCESSFUL' }, { state: 'free' });
  expect(open).toMatchObject({
    verdict: 'open',
    service: { seemsFinal: true },
    meaning: words.replace('the', 'The'),
    advice: expect.stringMatching(/^If that is final, let `readTransaction` of the service translate it/) as string,
  });
  expect(await inspectWith({ status: 'SUCCESSFUL' }, handled)).toMatchObject({
    verdict: 'unfounded',
    meaning: `The handler has succeeded, but ${words}`,
    advice: expect.stringMatching(
      /^If that is final, let `readTransaction`.* Otherwise inspect it again in some minutes, because a query may lag\. A service/,
    ) as string,
  });
  const pending = await inspectWith({ status: 'PENDING' }, { state: 'free' });
  expect(pending).toMatchObject({ service: { seemsFinal: false }, advice: expect.stringMatching(/^Wait/) as string });
});

test('a missed transfer whose record cannot have expired is reconciled first', async () => {
  const inspectAfter = async (days: number) => {
    const timestamp = new Date(Date.now() - days * 86_400_000).toISOString();
    return (await inspectWith({ timestamp }, { state: 'free' }, { retentionMs: 2 * 86_400_000 })).advice;
  };
  expect(await inspectAfter(1.9)).toBe(
    'Reconcile it now, or leave it to the next reconciliation. But if the store may have lost records (flush, eviction, ' +
      'failover, another prefix), stop reconciliation and compare with your books first. The log shows whether ' +
      'callbacks came, and why they failed: search the id.',
  );
  expect(await inspectAfter(2.1)).toMatch(
    /^If it became final longer ago than `retentionMs`.* compare with your books first\./,
  );
});

test('an inspection leaves no timer and no listener behind', async () => {
  fakeClock();
  const { signal } = new AbortController();
  await inspectWith({}, { state: 'free' }, { signal });
  expect(vi.getTimerCount()).toBe(0);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

test('options of inspectTransfer that do not fit are refused, and the error names them', async () => {
  const cases: [changes: object, message: string][] = [
    [{ id: 5 }, 'Expected `id` to be the id or externalId of a transfer, got 5. Write `id: String(id)`.'],
    [{ id: 5n }, 'Expected `id` to be the id or externalId of a transfer, got 5. Write `id: String(id)`.'],
    [{ id: '' }, 'Expected `id` to be the id or externalId of a transfer, got "". Write `id: \'payout-8841\'`.'],
    [{ receiver: undefined }, 'Expected `receiver` to be a receiver, got undefined.'],
    [{ receiver: {} }, 'Expected `receiver` to be a receiver, got an object.'],
  ];
  for (const [changes, message] of cases) {
    const refused = expect(inspectWith({}, { state: 'free' }, changes), message).rejects;
    await refused.toMatchObject({ code: 'INVALID_ARGUMENT', message: containing(message) });
  }
});
