// What the router, the listener and the handler take of a service that was defined.
import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  hmacSignature,
  headerToken,
  transferCallbackHandler,
  transferCallbackListener,
  transferCallbackReceiver,
  transferCallbackRouter,
  transferToken,
  urlToken,
  type ReceiverOptions,
  type Verifier,
} from 'transfer-callbacks';
import { defineService, type ServiceOptions } from 'transfer-callbacks/client';
import { containing } from '../support/helpers/containing.js';
import { errorBody, post, type PostResponse } from '../support/helpers/post.js';
import { recordingOptions } from '../support/helpers/logger.js';
import { httpServers, roads, type HttpServer } from '../support/servers/http-servers.js';
import { start, unauthorized } from './support.js';

const secret = 'a-secret-long-enough';
const sign = (text: string): string => createHmac('sha256', secret).update(text).digest('hex');
const signed = hmacSignature({ header: 'x-signature', secrets: secret });
const tokenSecret = 'a-token-long-enough';
const token = urlToken(tokenSecret);

interface Payload {
  event: string;
  data: { id: number; reference: string };
}

const states = { paid: 'SUCCESS', bounced: 'FAILED', waiting: 'PENDING' } as const;

function readWhole({ event, data }: Payload) {
  return event === 'customer' ? { ignored: event } : { state: event, id: data.id, externalId: data.reference };
}

/** A service with this verifier. It may be wrong. */
function define(changes: object = {}) {
  const definition: object = { read: readWhole, states, ...changes };
  return defineService(definition as ServiceOptions<Payload, ReturnType<typeof readWhole>, typeof states>);
}

const callback: Payload = { event: 'paid', data: { id: 7, reference: 'payout-1' } };
const processed = [200, '{"outcome":"processed"}'];
const refused = [401, unauthorized];
const shown = ({ status, body }: PostResponse): unknown[] => [status, body];

/** Starts a receiver of the service. */
async function startService(server: HttpServer, service: unknown, mount: object = {}) {
  const { options, handled, logged } = recordingOptions();
  const given: object = { ...options, service };
  const receiver = transferCallbackReceiver(given as ReceiverOptions);
  const { url } = await start(server, { receiver, ...mount });
  const send = async (body: unknown, headers = {}): Promise<unknown[]> => shown(await post(url, body, { headers }));
  const sendSigned = (body: object, text = JSON.stringify(body)) =>
    send(body, { 'X-Signature': sign(text), 'X-Token': 'another-secret-of-16' });
  return { url, receiver, handled, logged, send, sendSigned };
}

describe.each(httpServers)('on $name', (server) => {
  test('a verifier of the service may read the path', async () => {
    const { url, handled } = await startService(server, define({ verify: urlToken(secret) }));
    expect(shown(await post(url, callback))).toEqual(refused);
    expect(shown(await post(`${url}/a-guess-of-a-token`, callback))).toEqual(refused);
    expect(handled).toEqual([]);
    expect(shown(await post(`${url}/${secret}`, callback))).toEqual(processed);
  });
});

describe.each(roads)('on $name', (server) => {
  test('the verifier of the service decides, also about what needs no handler', async () => {
    const { send, sendSigned, handled, logged } = await startService(server, define({ verify: signed }));
    for (const event of ['paid', 'waiting', 'customer']) {
      expect(await send({ ...callback, event })).toEqual(refused);
      expect(await send({ ...callback, event }, { 'X-Signature': sign('another') })).toEqual(refused);
    }
    expect(handled).toEqual([]);
    expect(await sendSigned(callback)).toEqual(processed);
    for (const event of ['waiting', 'customer']) {
      expect(await sendSigned({ ...callback, event })).toEqual([200, '{"outcome":"ignored"}']);
    }
    expect(await sendSigned({ ...callback, event: 'lost' })).toEqual([
      400,
      errorBody(400, 'This is not the expected callback. See state.'),
    ]);
    expect(handled).toMatchObject([{ event: 'transfer.success', data: { id: '7' } }]);
    // The first event of its name has not been counted before, and an unknown state of a verified sender is an error.
    expect(logged.slice(-2)).toMatchObject([
      { level: 'warn', details: { outcome: 'ignored', type: 'customer', count: 1 } },
      { level: 'error', details: { outcome: 'invalid', id: '7', externalId: 'payout-1', verified: true } },
    ]);
  });

  test('all verifiers of the service must accept', async () => {
    const both = [signed, headerToken('X-Token', 'another-secret-of-16')];
    const { send, sendSigned } = await startService(server, define({ verify: both }));
    expect(await send(callback, { 'X-Signature': sign(JSON.stringify(callback)) })).toEqual(refused);
    expect(await send(callback, { 'X-Token': 'another-secret-of-16' })).toEqual(refused);
    expect(await sendSigned(callback)).toEqual(processed);
  });

  test('a verifier at the mount must accept as well, after that of the service', async () => {
    const { url, handled, logged } = await startService(server, define({ verify: signed }), { verify: token });
    const body = JSON.stringify(callback);
    const send = async (path: string, headers = {}): Promise<unknown[]> =>
      shown(await post(`${url}${path}`, callback, { headers }));
    expect(await send(`/${tokenSecret}`)).toEqual(refused);
    expect(await send('', { 'X-Signature': sign(body) })).toEqual(refused);
    expect(await send('')).toEqual(refused);
    expect(handled).toEqual([]);
    expect(await send(`/${tokenSecret}`, { 'X-Signature': sign(body) })).toEqual(processed);
    // The token is compared before the body is read, which the signature needs.
    expect(logged.map(({ details }) => (details as { refusedBy?: string }).refusedBy)).toEqual([
      'verifier 1 of 2, hmacSignature: no header x-signature',
      'verifier 2 of 2, urlToken',
      'verifier 2 of 2, urlToken',
    ]);
  });

  test('a verifier that is given twice is called once', async () => {
    const seen = new Set<unknown>();
    const refuseReplays: Verifier<unknown> = (_request, _callback, body) => {
      const text = String(body);
      return !seen.has(text) && Boolean(seen.add(text));
    };
    const service = define({ verify: refuseReplays });
    const verify = [service.verify, headerToken('X-Token', 'another-secret-of-16')];
    const { send, sendSigned } = await startService(server, service, { verify });
    expect(await send(callback)).toEqual(refused);
    expect(await sendSigned(callback)).toEqual(processed);
    expect(await sendSigned(callback)).toEqual(refused);
  });

  test('a copy of the service with another verifier replaces that of the service', async () => {
    const service = define({ verify: signed });
    const rotated = hmacSignature({ header: 'x-signature', secrets: 'the-next-secret-of-32-characters' });
    const body = JSON.stringify(callback);
    const replaced = await startService(server, { ...service, verify: rotated });
    expect(await replaced.sendSigned(callback)).toEqual(refused);
    expect(await replaced.send(callback, rotated.sign(body))).toEqual(processed);
    const stubbed = await startService(server, { ...service, verify: () => true });
    expect(await stubbed.send(callback)).toEqual(processed);
  });

  test('the log line of a verifier that throws has its name', async () => {
    const comesFromTunnel = (): boolean => {
      throw new Error('No tunnel.');
    };
    const { send, logged } = await startService(server, define({ verify: comesFromTunnel }));
    expect(await send(callback)).toEqual(refused);
    const details = { refusedBy: 'verifier 1 of 1, comesFromTunnel', err: { message: 'No tunnel.' } };
    expect(logged.at(-1)).toMatchObject({ level: 'warn', details });
  });

  test('receive runs no verifier: what the app hands over is trusted', async () => {
    const { receiver, handled } = await startService(server, define({ verify: signed }));
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
    expect(handled).toHaveLength(1);
  });
});

const { options } = recordingOptions();

test.each<[string, object, unknown, message: string]>([
  [
    'the verifier of an unknown tenant, although the service has one',
    { verify: signed },
    new Map().get('unknown'),
    'Expected `verify` to be a verifier, or a list of at least one, got undefined.',
  ],
  ['no verifier in the list', { verify: signed }, [], 'Expected `verify` to be a verifier, or a list of at least one'],
  [
    'a token, although the path has that of the service',
    { verify: urlToken(secret) },
    token,
    'Expected `verify` to be verifiers of which at most one reads the path, that of the `service` included: one URL has ' +
      'one token, got an array.',
  ],
  [
    'two tokens of one path',
    {},
    [token, transferToken(secret)],
    'Expected `verify` to be verifiers of which at most one',
  ],
])('a mount is refused for %s', (_what, definition, verify, message) => {
  const own: object = { ...options, service: define(definition) };
  const receiver = transferCallbackReceiver(own as ReceiverOptions);
  for (const mount of [transferCallbackRouter, transferCallbackListener, transferCallbackHandler]) {
    for (const given of [{ receiver }, own]) {
      expect(() => mount({ ...given, verify } as never)).toThrow(
        expect.objectContaining({ code: 'INVALID_ARGUMENT', message: containing(message) }),
      );
    }
  }
});

test('onOther beside confirm needs a verifier, and that of the service is one', () => {
  const withCharge = { states: { ...states, charge: 'OTHER' }, query: () => undefined };
  const given = { ...(options as object), confirm: true, onOther: () => undefined };
  const mount = (definition: object) => () =>
    transferCallbackListener({ ...given, service: define(definition) } as never);
  expect(mount(withCharge)).toThrow('Expected `verify` to be given beside `onOther`');
  expect(mount({ ...withCharge, verify: signed })).not.toThrow();
});
