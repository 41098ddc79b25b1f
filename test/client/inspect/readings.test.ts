import { getEventListeners } from 'node:events';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { inspectTransfer, transferService } from 'transfer-callbacks/client';
import { documentedService } from '../../../src/core/documented.js';
import { fakeClock, receiverOf } from '../../core/support.js';
import { freePort } from '../../support/servers/port.js';
import { serve } from '../../support/servers/serve.js';
import { containing } from '../../support/helpers/containing.js';
import { serviceOf, startService } from '../support.js';
import { callback, inspectWith, record } from './support.js';

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
    const [closed, silent] = [await freePort(), await serve(() => undefined)];
    const refusing = await serve((_request, response) => response.writeHead(400).end());
    onTestFinished(async () => {
      await Promise.all([silent.close(), refusing.close()]);
    });
    const cases: [baseUrl: string, why: string | RegExp, check: string][] = [
      ['http://no.such.invalid/api', /: getaddrinfo (?:ENOTFOUND|EAI_AGAIN) no\.such\.invalid\. /, 'and DNS.'],
      [`http://127.0.0.1:${closed}`, `: connect ECONNREFUSED 127.0.0.1:${closed}. `, 'may connect to it.'],
      [refusing.url.replace('http', 'https'), /: .*SSL.*\. /, 'begins with http or https'],
      [silent.url, ' within 500 ms. ', 'may connect to it.'],
      [refusing.url, ' refused: 400.', 'Check the API key and its secret: 400 can mean api key invalid, api secret'],
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

  test('a receiver is waited for as long as it waits for its store', async () => {
    fakeClock();
    onTestFinished(() => void vi.useRealTimers());
    const store = { claim: vi.fn(), read: () => new Promise<never>(() => undefined) };
    const receiver = receiverOf({ store, storeTimeoutMs: 4_000 });
    const inspection = inspectTransfer({ id: 'tr-1', receiver });
    await vi.advanceTimersByTimeAsync(4_050);
    expect((await inspection).record).toMatchObject({ error: { message: containing('within 4000 ms.') } });
  });

  test('a store from JavaScript that resolves with no record has none that could be read', async () => {
    for (const record of [undefined, { state: 'what' }, { state: 'handled' }]) {
      const store = { read: () => Promise.resolve(record as never) };
      expect(await inspectWith({}, { state: 'free' }, { store })).toMatchObject({
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
    const halves = half === 'service' ? { service } : { store: { read: never } };
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
  const handled = { state: 'handled', fingerprint: record } as const;
  expect(await inspectWith({ status: 'SUCCESSFUL' }, handled)).toMatchObject({
    verdict: 'unfounded',
    meaning: `The handler has succeeded, but ${words}`,
    advice: expect.stringMatching(/^If that is final, let `readTransaction`.* Otherwise inspect it again/) as string,
  });
  const pending = await inspectWith({ status: 'PENDING' }, { state: 'free' });
  expect(pending).toMatchObject({ service: { seemsFinal: false }, advice: expect.stringMatching(/^Wait/) as string });
});

test('a missed transfer whose record cannot have expired is reconciled first', async () => {
  const free = { state: 'free' as const };
  const inspect = async (retentionMs: number) =>
    (
      await inspectWith({}, free, {
        receiver: {
          inspect: () => Promise.resolve(free),
          options: { retentionMs, service: serviceOf({ getTransaction: () => callback.data }) },
        },
      })
    ).advice;
  expect(await inspect(604_800_000)).toBe(
    'Reconcile it now, or leave it to the next reconciliation. But if the store may have lost records (flush, eviction, ' +
      'failover, another prefix), stop reconciliation and compare with your books first. The log shows whether ' +
      'callbacks came, and why they failed: search the id.',
  );
  expect(await inspect(1)).toMatch(
    /^If it became final longer ago than `retentionMs`.* compare with your books first\./,
  );
});

test('a signal that has aborted is heard before a store that does not reply', async () => {
  const receiver = { inspect: () => new Promise<never>(() => undefined) };
  const signal = AbortSignal.abort(new Error('the pod is leaving'));
  await expect(inspectTransfer({ id: 'tr-1', receiver, signal })).rejects.toThrow('the pod is leaving');
});

test('an inspection leaves no timer and no listener behind', async () => {
  fakeClock();
  onTestFinished(() => void vi.useRealTimers());
  const { signal } = new AbortController();
  await inspectWith({}, { state: 'free' }, { signal });
  expect(vi.getTimerCount()).toBe(0);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

test('a receiver is asked through its inspect', async () => {
  const inspect = vi.fn(() => Promise.resolve({ state: 'free' as const, here: { sinceMs: 5 } }));
  const options = { service: serviceOf({ getTransaction: () => callback.data }) };
  const inspection = await inspectTransfer({ id: 'tr-1', receiver: { inspect, options } });
  expect(inspection).toMatchObject({ verdict: 'missed', record: { here: { sinceMs: 5 } } });
  expect(inspect).toHaveBeenCalledWith('tr-1');
});

test('options of inspectTransfer that do not fit are refused, and the error names them', async () => {
  const cases: [changes: object, message: string][] = [
    [{ id: 5 }, 'Expected `id` to be the id or externalId of a transfer, got 5.'],
    [{ id: '' }, 'Expected `id` to be the id or externalId of a transfer, got "".'],
    [{ receiver: undefined }, 'Expected `receiver` to be a receiver, got undefined.'],
    [{ receiver: {} }, 'Expected `receiver` to be a receiver, got an object.'],
  ];
  for (const [changes, message] of cases) {
    const refused = expect(inspectWith({}, { state: 'free' }, changes), message).rejects;
    await refused.toMatchObject({ code: 'INVALID_ARGUMENT', message: containing(message) });
  }
});
