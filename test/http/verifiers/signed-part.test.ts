// A service that signs one member of the body: who changes the rest must gain nothing that the verifier could prevent.
import { createHmac, sign as signBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { hmacSignature, publicKeySignature, type SignatureVerifier } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { httpServers } from '../../support/servers/http-servers.js';
import { post } from '../../support/helpers/post.js';
import { startGuarded } from '../support.js';
import { keyPairs, toPem } from './keys.js';

const secret = 'first-secret-0123456789';
const header = 'X-Signature';
const [keys] = keyPairs.ed25519;
const makers: [string, (part?: string) => SignatureVerifier, (text: string) => string][] = [
  [
    'hmacSignature',
    (part) => hmacSignature({ header, secrets: secret, part }),
    (text) => createHmac('sha256', secret).update(text).digest('hex'),
  ],
  [
    'hmacSignature that finds its secret by the request',
    // The hosts of these tests take asynchronous verifiers, too.
    (part) => hmacSignature({ header, secrets: () => secret, part }) as unknown as SignatureVerifier,
    (text) => createHmac('sha256', secret).update(text).digest('hex'),
  ],
  [
    'publicKeySignature',
    (part) => publicKeySignature({ header, publicKeys: toPem(keys), part }),
    (text) => signBytes(null, Buffer.from(text), keys.privateKey).toString('base64'),
  ],
];

describe.each(makers)('%s', (_name, make, sign) => {
  test.each(httpServers)('accepts the bytes of the part as they were received, on $name', async (server) => {
    const { url, refuses, logged } = await startGuarded(server, make('data'));
    const { event, data } = transferSucceeded();
    const written = JSON.stringify(data, undefined, 1).replaceAll('-', '\\u002d');
    expect(JSON.parse(written)).toEqual(data);
    const sent = { headers: { [header]: sign(written) } };
    const status = async (body: string) => (await post(url, body, sent)).status;
    expect(await status(`{ "event" : "${event}",\n"data": ${written} , "sent": 1}`)).toBe(200);
    expect(await status(`{"d\\u0061ta":${written},"event":"${event}"}`)).toBe(200);
    // The sender is verified: the part is signed. The event contradicts the status, which the schema refuses.
    expect(await status(`{"event":"transfer.failed","data":${written}}`)).toBe(400);
    expect(logged.at(-1)).toMatchObject({ details: { outcome: 'invalid', verified: true } });

    const forged = { ...data, status: 'FAILED', failureReason: 'x' };
    for (const body of [
      `{"event":"${event}","data":${JSON.stringify(data)}}`,
      `{"event":"transfer.failed","data":${JSON.stringify(forged)}}`,
      `{"event":"transfer.failed","data":${written},"data":${JSON.stringify(forged)}}`,
      `{"event":"transfer.failed","data":${JSON.stringify(forged)},"data":${written}}`,
      `{"event":"transfer.failed","data":${written},"d\\u0061ta":${JSON.stringify(forged)}}`,
      `{"event":"transfer.failed","data":${JSON.stringify(forged)},"signed":{"data":${written}}}`,
      `{"event":"${event}","Data":${written}}`,
      `[{"event":"${event}","data":${written}}]`,
      written,
      `{"event":"${event}","data":${written}`,
      '',
    ]) {
      await refuses(url, sent, body);
    }
  });

  test('names the part beside the function, and the whole body by none', () => {
    expect(make('data').part).toBe('data');
    expect(make().part).toBeUndefined();
  });
});

test('sign signs the part, and refuses a body without it, or with it twice', () => {
  const verify = hmacSignature({
    header,
    secrets: secret,
    part: 'data',
    timestamp: 'x-time',
    signed: '{timestamp}.{body}',
  });
  const accepts = (signed: Record<string, string>, body: string) =>
    verify({ headers: signed }, undefined, Buffer.from(body));
  const signed = verify.sign('{"event":"a","data": {"id": 1} }');
  expect(signed['x-signature']).toBe(
    createHmac('sha256', secret)
      .update(`${signed['x-time'] ?? ''}.{"id": 1}`)
      .digest('hex'),
  );
  expect(accepts(signed, '{"data":{"id": 1}}')).toBe(true);
  expect(accepts(signed, '{"data":{"id":1}}')).toBe(false);
  for (const body of ['{"event":"a"}', '{"data":1,"data":1}', 'data', '[]']) {
    for (const each of [body, Buffer.from(body)]) {
      expect(() => verify.sign(each)).toThrow(
        'Expected `body` to be a JSON object with one member `data`, which is signed, got ',
      );
    }
  }
});
