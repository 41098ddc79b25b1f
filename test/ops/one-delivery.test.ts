// One delivery is followed by its name: from the store's record to its log line, its outcome and its trace.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { pino } from 'pino';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { expect, onTestFinished, test, vi } from 'vitest';
import { post } from '../support/helpers/post.js';
import { startMerchantApp, startRedisBackend, toInspect } from './support.js';
import { parseDeliveryName } from '../../src/core/delivery.js';

vi.setConfig({ testTimeout: 180_000 });

type Named = Record<string, unknown> & { readonly delivery: string };

/** Keeps what is published on a channel until the test has finished. */
function listen(name: string): Named[] {
  const messages: Named[] = [];
  const keep = (message: unknown): void => void messages.push(message as Named);
  subscribe(name, keep);
  onTestFinished(() => void unsubscribe(name, keep));
  return messages;
}

/** A channel publishes one context at the start, and adds the result to it at the end. */
const traced = ['receive', 'store', 'handle'] as const;

test('one delivery is followed by its name from the record in Redis to the log line, the outcome and the trace', async () => {
  const outcomes = listen('transfer-callbacks:outcome');
  const traces = traced.map((name) => listen(`tracing:transfer-callbacks:${name}:start`));
  const lines: Named[] = [];
  const logger = pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line) as Named) });
  const { client, ...backend } = await startRedisBackend();
  const key = (id: string): string => `transfer-callbacks:${id}`;
  const claims: (string | null)[] = [];
  const merchant = await startMerchantApp(backend, {
    receiver: {
      logger,
      onSuccess: async ({ data }) => {
        claims.push(await client.get(key(data.id)));
      },
    },
  });

  // Other deliveries, one of them of the same callback, which the name must tell apart.
  const callback = transferSucceeded();
  await post(merchant.callbackUrl, transferFailed());
  await post(merchant.callbackUrl, callback);
  await post(merchant.callbackUrl, callback);
  const [received = []] = traces;
  await vi.waitUntil(() => received.filter(({ result }) => result !== undefined).length === 3);

  const { id, externalId } = callback.data;
  const [state, delivery = ''] = (await client.get(key(id)))?.split(' ') ?? [];
  expect(state).toBe('settled');
  expect(parseDeliveryName(delivery)).toMatchObject({ pid: process.pid });
  expect(claims).toEqual([expect.stringContaining(`claimed ${delivery}`)]);
  expect((await merchant.run(toInspect(id))).out.replaceAll(/\n {12}/g, '')).toContain(delivery);

  const its = (all: readonly Named[]): Named[] => all.filter((each) => each.delivery === delivery);
  const handled = { delivery, outcome: 'processed', id, externalId, source: 'http' };
  expect(lines).toHaveLength(3);
  expect(its(lines)).toMatchObject([{ level: 30, msg: 'A callback was handled.', ...handled }]);
  expect(its(outcomes)).toMatchObject([handled]);
  expect(traces.map(its)).toMatchObject([
    [{ delivery, source: 'http', result: handled }],
    [
      { delivery, id, call: 'claim', result: 'claimed' },
      { delivery, id, call: 'settle', result: { overlapped: false } },
    ],
    [{ delivery, id, externalId, event: 'transfer.success' }],
  ]);
});
