// Korapay signs one member of the body: a stranger who changes the rest, or has the member twice, must gain nothing.
import { createHmac } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import { memoryStore, transferCallbackHandler, type PayoutService, type TransferCallback } from 'transfer-callbacks';

const key = 'the-secret-of-the-service-0123456789';

async function load(secret: string): Promise<PayoutService<TransferCallback>> {
  vi.resetModules();
  vi.stubEnv('KORAPAY_SECRET_KEY', secret);
  const { korapay } = (await import('../../examples/services/korapay.js')) as { korapay: unknown };
  return korapay as PayoutService<TransferCallback>;
}

const service = await load(key);
const data = { fee: 15, amount: 150.99, status: 'success', currency: 'NGN', reference: 'payout-1', note: 'é"x"' };
const good = JSON.stringify(data);
const signature = createHmac('sha256', key).update(good).digest('hex');
const signed = { status: 'SUCCESS', id: 'payout-1', externalId: 'payout-1', amount: 150.99, currency: 'NGN' };

/** Sends a body with the signature of `data` to a new receiver. Resolves with the status and what was handled. */
async function send(body: string | Uint8Array<ArrayBuffer>) {
  const handled: unknown[] = [];
  const handle = ({ data }: TransferCallback): void => {
    handled.push(data);
  };
  const handler = transferCallbackHandler({
    ...{ store: memoryStore(), service, onSuccess: handle, onFailed: handle, logger: false },
  });
  const headers = { 'content-type': 'application/json', 'x-korapay-signature': signature };
  const response = await handler(new Request('http://merchant.example/', { method: 'POST', body, headers }));
  return { status: response.status, handled };
}

const forged = JSON.stringify({ ...data, status: 'failed', amount: 1, reference: 'payout-2' });

/** Bodies whose `data` has the signed values, however it is written. */
const genuine = [
  `{"event":"transfer.success","data":${good}}`,
  `{"event":"transfer.failed","data":${good}}`,
  `{ "data" : ${JSON.stringify(data, undefined, 1)}, "sent": 1 }`,
  `{"data":${good.replace('150.99', '150.990')}}`,
  `{"data":${good.replace('payout-1', 'payout\\u002d1')}}`,
  `{"d\\u0061ta":${good}}`,
  `{"data":${forged},"data":${good}}`,
  `{"data":${forged},"d\\u0061ta":${good}}`,
];

const refused = [
  `{"event":"transfer.failed","data":${forged}}`,
  `{"data":${good},"data":${forged}}`,
  `{"data":${good},"d\\u0061ta":${forged}}`,
  `{"data":${forged},"signed":{"data":${good}}}`,
  `{"x":"\\"data\\":${good.replaceAll('"', '\\"')}","data":${forged}}`,
  `{"__proto__":{"data":${good}},"data":${forged}}`,
  `{"__proto__":{"data":${good}}}`,
  `{"data":{"__proto__":${good}}}`,
  `{"data":{"toJSON":1,${good.slice(1)}}`,
  `{"data":${JSON.stringify(Object.fromEntries(Object.entries(data).reverse()))}}`,
  ...[`{"Data":${good}}`, `[{"data":${good}}]`, good, `{"data":${good}`, '{}', 'null', ''],
  Buffer.concat([Buffer.from(`{"data":${good},"x":"`), Buffer.from([0xff]), Buffer.from('"}')]),
];

test('of a body that has the signed `data` the signed values are handled, whatever stands beside it', async () => {
  for (const body of genuine) {
    const { status, handled } = await send(body);
    expect({ body, status, handled }).toEqual({ body, status: 200, handled: [expect.objectContaining(signed)] });
  }
});

test('of a body that has another `data` nothing is handled', async () => {
  for (const body of refused) {
    const { status, handled } = await send(body);
    expect({ body, isRefused: status === 401 || status === 400, handled }).toEqual({
      body,
      isRefused: true,
      handled: [],
    });
  }
});

test('sign makes what the verifier accepts, and fails for a body without `data`', () => {
  const { sign } = service.verify as { sign: (body: string | Uint8Array) => object };
  const body = `{"event":"transfer.success", "data": ${good}}`;
  for (const sent of [body, Buffer.from(body)]) expect(sign(sent)).toEqual({ 'x-korapay-signature': signature });
  expect(() => sign('{}')).toThrow();
});

test('without its key there is no definition: anybody could sign with an empty one', async () => {
  await expect(load('')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
});
