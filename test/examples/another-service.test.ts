import { createHmac } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { errorBody, post } from '../support/helpers/post.js';
import { serve as serveListener } from '../support/servers/serve.js';
import { duplicate, processed, serve } from './support.js';

const secret = 'the-secret-of-the-signature';

/** Sends an event as the service writes it, signed with `key`. */
function send(url: string, event: unknown, key = secret) {
  const body = typeof event === 'string' ? event : JSON.stringify(event, undefined, 1).replaceAll('/', '\\/');
  const signature = createHmac('sha512', key).update(body).digest('hex');
  return post(url, body, { headers: { 'X-Signature': signature } });
}

test('another-service.ts handles the outcomes of payouts and charges once, and refuses strangers and what may be an outcome', async () => {
  const { url, said, output } = await serve('another-service.ts', { SIGNATURE_SECRET: secret });
  const payout = { id: 7, reference: 'a/1', amount: 1999, currency: 'XAF' };
  const paid = { id: 'ev_1', type: 'payout.paid', payout };
  const bounced = {
    id: 'ev_2',
    type: 'payout.bounced',
    payout: { ...payout, id: 8, reference: 'a/2', reason: 'Wallet closed' },
  };
  const charge = { id: 'ev_3', type: 'charge.paid', charge: { ...payout, reference: 'c/1' } };
  const others = ['payout.pending', 'charge.refunded', 'customer.created'].map((type) => ({
    id: 'ev_4',
    type,
    payout,
  }));

  const copies = await Promise.all(Array.from({ length: 5 }, () => send(url, charge)));
  expect(copies.map(({ body }) => body).sort()).toEqual([...Array<string>(4).fill(duplicate.body), processed.body]);
  for (const event of others) expect(await send(url, event)).toMatchObject(processed);
  expect(await send(url, paid)).toMatchObject(processed);
  expect(await send(url, bounced)).toMatchObject(processed);
  for (const event of [charge, ...others, paid, bounced]) expect(await send(url, event)).toMatchObject(duplicate);
  expect(await send(url, { ...paid, payout: { ...payout, amount: 2000 } })).toMatchObject({ status: 422 });
  expect(await send(url, { ...charge, charge: { ...charge.charge, amount: 2000 } })).toMatchObject({ status: 422 });

  for (const event of [paid, charge, 'null', '{']) {
    expect(await send(url, event, 'the-secret-of-a-stranger')).toMatchObject({
      status: 401,
      body: errorBody(401, 'The sender is not verified.'),
    });
  }
  expect((await post(url, charge)).status).toBe(401);
  const wrong = [
    { ...paid, type: 'payout.reversed' },
    { ...paid, payout: { ...payout, amount: undefined } },
    { ...charge, charge: { ...payout, amount: undefined } },
    'null',
    '{',
  ];
  for (const event of wrong) expect((await send(url, event)).status).toBe(400);
  await said(/The body is not JSON/);
  // The log names the field, although the schema is a union. The first is that of a stranger.
  const named = [...output().matchAll(/['"](\S+): Invalid/g)].map(([, path]) => path);
  expect(named).toEqual(['body', 'type', 'payout.amount', 'charge.amount', 'body']);
  await said(/Refunded a\/2: Wallet closed/);
  expect(output().match(/Paid .*/g)).toEqual(['Paid a/1: 19.99']);
  expect(output().match(/Credited .*/g)).toEqual(['Credited c/1: 19.99']);
});

test('another-service.ts reconciles a payout whose callback never came, and its callback is then a duplicate', async () => {
  const payout = { id: 9, reference: 'a/9', amount: 1999, currency: 'XAF' };
  const service = await serveListener((_request, response) => response.end(JSON.stringify({ state: 'paid', payout })));
  onTestFinished(service.close);
  const environment = { SIGNATURE_SECRET: secret, SERVICE_URL: service.url };
  const { url, output } = await serve('another-service.ts 9', environment);
  expect(output()).toMatch(/Paid a\/9: 19\.99[^]*result: 'processed'/);
  expect(await send(url, { id: 'ev_9', type: 'payout.paid', payout })).toMatchObject(duplicate);
});
