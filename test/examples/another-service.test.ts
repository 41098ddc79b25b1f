import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { errorBody, post } from '../support/post.js';
import { duplicate, processed, serve } from './support.js';

const secret = 'the-secret-of-the-signature';

/** Sends an event as the service writes it, signed with `key`. */
function send(url: string, event: unknown, key = secret) {
  const body = typeof event === 'string' ? event : JSON.stringify(event, undefined, 1).replaceAll('/', '\\/');
  const signature = createHmac('sha512', key).update(body).digest('hex');
  return post(url, body, { headers: { 'X-Signature': signature } });
}

test('another-service.ts handles two kinds of events, ignores two, and refuses strangers and what it does not know', async () => {
  const { url, said, output } = await serve('another-service.ts', { SIGNATURE_SECRET: secret });
  const paid = { type: 'payout.paid', payout: { id: 7, reference: 'a/1', amount: 1999, currency: 'XAF' } };
  const bounced = { type: 'payout.bounced', payout: { id: 8, reference: 'a/2', reason: 'Wallet closed' } };
  const pending = { type: 'payout.pending', payout: { id: 7, reference: 'a/1' } };

  const ignored = { status: 200, body: '{"outcome":"ignored"}' };
  expect(await send(url, pending)).toMatchObject(ignored);
  expect(await send(url, { type: 'charge.paid' })).toMatchObject(ignored);
  expect(output()).not.toContain('a/1');
  expect(await send(url, paid)).toMatchObject(processed);
  expect(await send(url, paid)).toMatchObject(duplicate);
  expect(await send(url, { ...paid, payout: { ...paid.payout, amount: 2000 } })).toMatchObject({ status: 422 });
  expect(await send(url, bounced)).toMatchObject(processed);

  for (const event of [paid, pending, 'null', '{']) {
    expect(await send(url, event, 'the-secret-of-a-stranger')).toMatchObject({
      status: 401,
      body: errorBody(401, 'The sender is not verified.'),
    });
  }
  expect((await post(url, pending)).status).toBe(401);
  const wrong = [{ type: 'payout.reversed' }, { ...paid, payout: { ...paid.payout, amount: undefined } }, 'null', '{'];
  for (const event of wrong) expect((await send(url, event)).status).toBe(400);

  expect(output().match(/Nothing to do for .*/g)).toEqual(
    ['payout.pending', 'charge.paid'].map((type) => `Nothing to do for ${type}`),
  );
  await said(/Refunded a\/2: Wallet closed/);
  expect(output().match(/Paid a\/1: 19\.99/g)).toHaveLength(1);
});
