// `service` of `deliver`: the callbacks of another service, in a test of an app.
import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import express, { text, urlencoded, type Express } from 'express';
import { expect, onTestFinished, test, vi } from 'vitest';
import { memoryStore, transferCallbackRouter, type PayoutService } from 'transfer-callbacks';
import { defineService, deliver, headerToken, hmacSignature, publicKeySignature, urlToken } from 'transfer-sandbox';
import { containing } from '../../../test/support/helpers/containing.js';

const secret = 'the-secret-of-the-service';
const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const publicKeys = publicKey.export({ type: 'spki', format: 'pem' }).toString();

interface Payload {
  readonly state: string;
  readonly id: string;
  readonly reference: string;
}

const options = {
  read: ({ state, id, reference }: Payload) => ({ state, id, externalId: reference }),
  states: { paid: 'SUCCESS', bounced: 'FAILED' },
} as const;
const signed = defineService({
  ...options,
  verify: hmacSignature({ header: 'x-signature', secrets: secret, timestamp: 'x-timestamp' }),
});
const signedByKey = defineService({
  ...options,
  verify: publicKeySignature({ header: 'x-signature', publicKeys }),
});

/** An app that takes the callbacks of a service, and the own ids that it has handled. */
function merchant(service: typeof signed, path = '/'): { app: Express; handled: string[] } {
  const handled: string[] = [];
  const handle = ({ data }: { data: { externalId: string } }): number => handled.push(data.externalId);
  const router = transferCallbackRouter({
    ...{ service, store: memoryStore(), logger: false, onSuccess: handle, onFailed: handle },
  });
  return { app: express().post(path, router), handled };
}

const paid = { state: 'paid', id: '7', reference: 'payout-17' };

test('deliver signs the given callback as its service does', async () => {
  const { app, handled } = merchant(signed);
  expect(await deliver(app, paid, { retry: false })).toEqual({ acknowledged: false, responses: [401] });
  expect(await deliver(app, paid, { service: signed, copies: 3 })).toEqual({
    acknowledged: true,
    responses: [200, 200, 200],
  });
  expect(handled).toEqual(['payout-17']);
  const gone = { ...paid, state: 'gone' };
  expect((await deliver(app, gone, { service: signed })).responses).toEqual([400, 400, 400, 400]);
});

test('each attempt has a signature of its own, as that of its time', async () => {
  const given: unknown[] = [];
  const app = express().use(({ headers }, response) => {
    given.push(headers['x-signature']);
    response.sendStatus(500);
  });
  let count = 0;
  const sign = () => ({ 'x-signature': String((count += 1)) });
  const service = defineService({ ...options, verify: Object.assign(() => true, { sign }) });
  await deliver(app, paid, { service });
  expect(new Set(given).size).toBe(4);
});

test('what `headers` have replaces a signature of the same name, and is sent beside another one', async () => {
  const { app } = merchant(signed);
  const once = { service: signed, retry: false };
  const headers = { 'X-Signature': '00'.repeat(32) };
  expect((await deliver(app, paid, { ...once, headers })).responses).toEqual([401]);
  expect((await deliver(app, paid, { ...once, headers: { 'X-Tenant': 'a' } })).responses).toEqual([200]);
});

test('a URLSearchParams is sent as a form, to the path with the token of a service that signs nothing', async () => {
  const service = defineService({ ...options, verify: urlToken(secret) });
  const { app, handled } = merchant(service, '/callbacks/:token');
  const form = new URLSearchParams(paid);
  const parsing = express().use(urlencoded({ extended: false }), app);
  expect(await deliver(parsing, form, { service, path: `/callbacks/${secret}` })).toEqual({
    acknowledged: true,
    responses: [200],
  });
  expect(handled).toEqual(['payout-17']);
});

test('deliver refuses a service whose verifier cannot sign, unless `headers` do', async () => {
  const { app } = merchant(signedByKey);
  const cannotSign = {
    code: 'INVALID_ARGUMENT',
    option: 'service',
    message: containing('Expected `service` to be one whose verifier can sign this callback, or `headers` beside it'),
  };
  await expect(deliver(app, paid, { service: signedByKey })).rejects.toMatchObject(cannotSign);
  const bySecret = hmacSignature({ header: 'x-signature', secrets: () => Promise.resolve(secret) });
  const ofTenants = defineService({ ...options, verify: bySecret });
  await expect(deliver(app, paid, { service: ofTenants })).rejects.toMatchObject(cannotSign);
  const half = defineService({ ...options, verify: [bySecret, headerToken('x-token', secret)] });
  await expect(deliver(app, paid, { service: half })).rejects.toMatchObject(cannotSign);
  const headers = (body: Buffer) => ({ 'x-signature': sign('sha256', body, privateKey).toString('base64') });
  expect((await deliver(app, paid, { service: signedByKey, headers })).responses).toEqual([200]);
});

test('deliver refuses a service that `defineService` has not made', async () => {
  const service = { read: () => paid } as unknown as PayoutService;
  await expect(deliver('http://127.0.0.1:9', paid, { service })).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: containing('Expected `service` to be made by `defineService`, got an object.'),
  });
});

test('a service by its name signs with CALLBACK_SECRET, names its events and writes a form, as check does', async () => {
  const arrived: { headers: IncomingHttpHeaders; body: string }[] = [];
  const app = express()
    .use(text({ type: () => true }))
    .use(({ headers, body }, response) => {
      arrived.push({ headers, body: String(body) });
      response.sendStatus(200);
    });
  const event = { event: 'transfer.success', data: { id: 7, reference: 'payout-17' } };
  await expect(deliver(app, event, { service: 'paystack' })).rejects.toThrow(
    'the environment variable CALLBACK_SECRET to be the test secret key of paystack that your endpoint has, got nothing.',
  );
  vi.stubEnv('CALLBACK_SECRET', secret);
  onTestFinished(() => void vi.unstubAllEnvs());
  await deliver(app, event, { service: 'paystack' });
  await deliver(app, event, { service: 'razorpayx', copies: 2 });
  await deliver(app, { treatment_status: 'VAL' }, { service: 'cinetpay' });
  const [paystack, razorpayx, copy, cinetpay] = arrived;
  const right = createHmac('sha512', secret).update(JSON.stringify(event)).digest('hex');
  expect(paystack?.headers['x-paystack-signature']).toBe(right);
  expect(razorpayx?.headers['x-razorpay-event-id']).toMatch(/^[\w-]{36}$/);
  expect(copy?.headers['x-razorpay-event-id']).toBe(razorpayx?.headers['x-razorpay-event-id']);
  expect([cinetpay?.body, cinetpay?.headers['content-type']]).toEqual([
    'treatment_status=VAL',
    'application/x-www-form-urlencoded',
  ]);
});
