import { constants } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { messageSignature } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import fc from '../../support/helpers/fast-check.js';
import { roads } from '../../support/servers/http-servers.js';
import { post } from '../../support/helpers/post.js';
import { startGuarded } from '../support.js';
import { keyPairs, toPem } from './keys.js';
import {
  digestOf,
  nowMs,
  publicUrl,
  rfc,
  signMessage,
  usualComponents,
  type SentHeaders,
  type Signing,
} from './sign-message.js';

const now = nowMs / 1_000;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: nowMs });
});
afterEach(() => {
  vi.useRealTimers();
});

const [p256, foreign] = keyPairs.p256;

const verifier = (changed = {}) => messageSignature({ publicKeys: toPem(p256), url: publicUrl, ...changed });

const raw = { dsaEncoding: 'ieee-p1363' };
const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 64 };
const [rsa] = keyPairs.rsa;
const created = `;created=${now}`;
const accepted: [string, Signing][] = [
  ['ECDSA P-256 in DER', {}],
  ['ECDSA P-256, raw', { options: raw }],
  ['ECDSA P-384, raw', { keys: keyPairs.p384[0], hash: 'sha384', options: raw, params: created }],
  ['Ed25519', { keys: keyPairs.ed25519[0], hash: null, params: `${created};alg="ed25519"` }],
  ['RSA with PKCS #1 v1.5', { keys: rsa, params: `${created};alg="rsa-v1_5-sha256"` }],
  ['RSA with PSS', { keys: rsa, hash: 'sha512', options: pss, params: `${created};alg="rsa-pss-sha512"` }],
  ['RSA with PKCS #1 v1.5, which it does not name', { keys: rsa, params: created }],
  [
    'RSA with PSS and the longest salt',
    { keys: rsa, hash: 'sha512', options: { ...pss, saltLength: constants.RSA_PSS_SALTLEN_MAX_SIGN }, params: created },
  ],
  ['RSA with PSS, which it does not name', { keys: rsa, hash: 'sha512', options: pss, params: created }],
];

const required = '"@method" "@authority" "@path" "content-digest"';
const body = JSON.stringify(transferSucceeded());
const [sha256, sha512] = [digestOf(body, 'sha-256'), digestOf(body)];

/** What the service has not signed, or has signed for another request, or what this package does not understand. */
const refused: [string, Signing | ((signed: SentHeaders) => SentHeaders)][] = [
  ['a digest that was not signed', (signed) => ({ ...signed, 'Content-Digest': sha256 })],
  ['a digest of another body', { digest: digestOf(`${body} `) }],
  ['a second digest that is wrong', { digest: `${sha256}, ${digestOf(`${body} `)}` }],
  ['a digest that is there twice', { digest: `${sha512}, ${sha512}` }],
  ['a digest by a broken algorithm', { digest: digestOf(body, 'md5') }],
  ['a digest by SHA-1', { digest: digestOf(body, 'sha-1') }],
  ['a digest by another algorithm beside one that is known', { digest: `${sha512}, ${digestOf(body, 'sha-384')}` }],
  ['a digest with a parameter', { digest: `${sha512};q=1` }],
  ['a digest by two names', { digest: sha512.replace('sha-512', 'SHA-512') }],
  ['an empty digest', { digest: '' }],
  ['another method', { values: { '@method': 'PUT' } }],
  ['another authority', { values: { '@authority': 'other.example' } }],
  ['the authority behind the proxy', { values: { '@authority': '127.0.0.1' } }],
  ['another path', { values: { '@path': '/callbacks/transfers' } }],
  [
    'another URL',
    { components: '"@method" "@target-uri" "content-digest"', values: { '@target-uri': `${publicUrl}/` } },
  ],
  ['another header', (signed) => ({ ...signed, 'Signature-Date': '2026-09-21T14:13:20.000002Z' })],
  ['a header that is missing', (signed) => ({ ...signed, 'Signature-Date': undefined })],
  ['a header that is there twice', (signed) => ({ ...signed, 'Signature-Date': ['a', 'b'] })],
  ...required.split(' ').map((left): (typeof refused)[number] => {
    const components = usualComponents.split(' ').filter((each) => each !== left);
    return [`${left} left out`, { components: components.join(' ') }];
  }),
  ['only a part of the URL in what contains others', { components: '"@method" "@request-target" "content-digest"' }],
  ['no component', { components: '' }],
  ['a component that is there twice', { components: `${usualComponents} "content-type"` }],
  ['the digest twice', { components: `${usualComponents} "content-digest"` }],
  ['a component of responses', { components: `${usualComponents} "@status"`, values: { '@status': '200' } }],
  ['an unknown component', { components: `${usualComponents} "@unknown"` }],
  ['a component that is a property of objects', { components: `${usualComponents} "constructor"` }],
  ['a component in upper case', { components: usualComponents.replace('content-type', 'Content-Type') }],
  ...['"content-type"', '"content-digest"'].flatMap((name) =>
    [';req', ';sf', ';bs', ';tr', ';key="sha-512"', ';name="a"'].map((parameter): (typeof refused)[number] => [
      `${name} with ${parameter}`,
      { components: usualComponents.replace(name, name + parameter) },
    ]),
  ),
  ['a second blank', { components: usualComponents.replace(' ', '  ') }],
  ['created in the future', { params: `;created=${now + 301};expires=${now + 400}` }],
  ['created in the future, and never expires', { params: `;created=${now + 301}` }],
  ['created long ago, and never expires', { params: `;created=${now - 301}` }],
  ['expired', { params: `;created=${now - 60};expires=${now - 1}` }],
  ['expired, and does not say when it was created', { params: `;expires=${now - 1}` }],
  ['no time', { params: ';alg="ecdsa-p256-sha256"' }],
  ['a time that is text', { params: `;created="${now}"` }],
  ['a time that is negative', { params: `;created=-${now}` }],
  ['a time with a fraction', { params: `;created=${now}.0` }],
  ['a time that is there twice', { params: `;created=${now - 301};created=${now}` }],
  ['another time than was signed', (signed) => change(signed, 'Signature-Input', String(now + 60), String(now + 61))],
  ['an unknown algorithm', { params: `${created};alg="ecdsa-p256-sha1"` }],
  ['the algorithm of a secret', { params: `${created};alg="hmac-sha256"` }],
  ['the algorithm of another key', { params: `${created};alg="ecdsa-p384-sha384"` }],
  ['an algorithm that is a property of objects', { params: `${created};alg="constructor"` }],
  ['an empty algorithm', { params: `${created};alg=""` }],
  ['an algorithm that is no text', { params: `${created};alg=ed25519` }],
  ['an unknown parameter', { params: `${created};strict="yes"` }],
  ['a parameter without a value', { params: `${created};tag` }],
  ['a parameter after a blank', { params: `${created}; tag="a"` }],
  ['another hash', { hash: 'sha512' }],
  ['a foreign key', { keys: foreign }],
  ['another label in its input', (signed) => change(signed, 'Signature-Input', 'sig-pp', 'sig-qq')],
  ['a label in upper case', { label: 'SIG' }],
  ['no label', (signed) => ({ ...signed, Signature: String(signed.Signature).slice(7) })],
  [
    'a second label',
    (signed) => ({ ...signed, ...addLabel(signed, signMessage(body, { label: 'b', keys: foreign })) }),
  ],
  [
    'a second label that is right, too',
    (signed) => ({ ...signed, ...addLabel(signed, signMessage(body, { label: 'b' })) }),
  ],
  ['a second label of the signature', (signed) => ({ ...signed, Signature: `${String(signed.Signature)}, b=:AA==:` })],
  ['a signature that is not Base64', (signed) => change(signed, 'Signature', '=:', '=:*')],
  ['a signature with a parameter', (signed) => ({ ...signed, Signature: `${String(signed.Signature)};a` })],
  ['an empty signature', (signed) => ({ ...signed, Signature: 'sig-pp=::' })],
  ['a signature with another bit', (signed) => change(signed, 'Signature', '=:M', '=:N')],
  ...['Signature', 'Signature-Input', 'Content-Digest'].map((name): (typeof refused)[number] => [
    `${name} twice`,
    (signed) => ({ ...signed, [name]: [String(signed[name]), String(signed[name])] }),
  ]),
];

function change(signed: SentHeaders, name: string, from: string, to: string): SentHeaders {
  const value = String(signed[name]);
  expect(value).toContain(from);
  return { ...signed, [name]: value.replace(from, to) };
}

function addLabel(signed: SentHeaders, other: SentHeaders): SentHeaders {
  const names = ['Signature', 'Signature-Input'];
  return Object.fromEntries(names.map((name) => [name, `${String(signed[name])}, ${String(other[name])}`]));
}

/** A test that sends each signature of a list: 9 s at a load of 30, and over 20 s at a load of 39. */
const sendingTimeoutMs = 120_000;

test.each(accepted)('a signature by %s is accepted, and of no other body', (_, signing) => {
  const verify = verifier({ publicKeys: toPem(signing.keys ?? p256) });
  expect(accepts(signMessage(body, signing), verify)).toBe(true);
  expect(accepts(signMessage(`${body} `, signing), verify)).toBe(false);
});

describe.each(roads)('on $name', (server) => {
  test(
    'a signature is refused that is not by the service, for this request, now, and of a form that is known',
    async () => {
      const { url, refuses, thrown } = await startGuarded(server, verifier());
      for (const [what, forge] of refused) {
        const headers = typeof forge === 'function' ? forge(signMessage(body)) : signMessage(body, forge);
        await refuses(url, { headers }, body).catch((error: unknown) => {
          throw new Error(`It was accepted: ${what}.`, { cause: error });
        });
      }
      expect(thrown()).toEqual([]);
    },
    sendingTimeoutMs,
  );

  test('the signature of RFC 9421 B.2.3 is accepted while it is young', async () => {
    const verify = messageSignature({ publicKeys: rfc.publicKey, url: rfc.url });
    const { url, refuses, logged } = await startGuarded(server, verify);
    const headers = { ...rfc.headers, 'Signature-Input': `sig=${rfc.input}`, Signature: `sig=:${rfc.signature}:` };
    vi.setSystemTime(rfc.createdMs);
    // The sender is verified, and what it sends is no callback.
    expect((await post(url, rfc.body, { headers })).status).toBe(400);
    expect(logged).toMatchObject([{ details: { outcome: 'invalid', verified: true } }]);
    vi.setSystemTime(rfc.createdMs + 301_000);
    await refuses(url, { headers }, rfc.body);
  });
});

function accepts(headers: SentHeaders, verify = verifier(), method = 'POST'): boolean {
  const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  return verify({ headers: Object.fromEntries(lower) as never, method }, undefined, Buffer.from(body));
}

test.each<[string, Signing]>([
  ['a digest by SHA-256', { digest: sha256 }],
  ['two digests', { digest: `${sha256},${sha512}` }],
  ['two digests with blanks', { digest: `${sha512} ,\t${sha256}` }],
  ['the whole URL in place of its parts', { components: '"@method" "@target-uri" "content-digest"' }],
  ['the target in place of the path', { components: '"@method" "@authority" "@request-target" "content-digest"' }],
  ['every component of the URL', { components: `${required} "@scheme" "@query" "@target-uri" "@request-target"` }],
  ['an empty header', { values: { 'signature-date': '' } }],
  ['a label with a star', { label: '*a.b-1_' }],
  ['expires only', { params: `;expires=${now}` }],
  ['created long ago, and expires later', { params: `;created=${now - 100_000};expires=${now + 1}` }],
  ['created at the edges of the tolerance', { params: `;created=${now - 300}` }],
  ['created in the future within the tolerance', { params: `;created=${now + 300}` }],
  ['all parameters', { params: `;nonce="a\\"b\\\\";tag="c d";keyid="";expires=${now};created=${now}` }],
])('a signature with %s is accepted', (_, signing) => {
  expect(accepts(signMessage(body, signing))).toBe(true);
});

test('a signed header is compared by its bytes, which hosts decode as Latin-1', () => {
  const signed = signMessage(body, { values: { 'signature-date': 'à midi' } });
  expect(accepts(signed)).toBe(false);
  expect(accepts({ ...signed, 'Signature-Date': Buffer.from('à midi').toString('latin1') })).toBe(true);
});

test.each([
  ['HTTPS://user:password@MERCHANT.example:443/public/callbacks#part', '"@authority" "@path" "@target-uri"', {}],
  ['http://merchant.example:80', '"@authority" "@path" "@scheme"', { '@path': '/', '@scheme': 'http' }],
  [
    'https://merchant.example:8443/a%2Fb/',
    '"@authority" "@path"',
    { '@authority': 'merchant.example:8443', '@path': '/a%2Fb/' },
  ],
  [
    'https://merchant.example/public/callbacks?b=1&a=%20',
    '"@authority" "@path" "@query" "@request-target" "@target-uri"',
    {
      '@query': '?b=1&a=%20',
      '@request-target': '/public/callbacks?b=1&a=%20',
      '@target-uri': `${publicUrl}?b=1&a=%20`,
    },
  ],
])('the components of %s are those of RFC 9421', (url, components, values) => {
  const signing = { components: `"@method" ${components} "content-digest"`, values: values as Signing['values'] };
  expect(accepts(signMessage(body, signing as Signing), verifier({ url }))).toBe(true);
});

test('`covered` says what must be signed beside the digest', () => {
  const signed = (components: string) => signMessage(body, { components });
  expect(accepts(signed('"content-digest"'), verifier({ covered: [] }))).toBe(true);
  expect(accepts(signed('"@method" "@path"'), verifier({ covered: [] }))).toBe(false);
  const verify = verifier({ covered: ['signature-date', '@query'] });
  expect(accepts(signed('"content-digest" "signature-date" "@query"'), verify)).toBe(true);
  expect(accepts(signed('"content-digest" "signature-date" "@target-uri"'), verify)).toBe(true);
  expect(accepts(signed('"content-digest" "@query"'), verify)).toBe(false);
  expect(accepts(signed('"content-digest" "signature-date" "@path"'), verify)).toBe(false);
});

test('`toleranceMs` is for the time of creation, and no time after `expires` is accepted', () => {
  const verify = verifier({ toleranceMs: 10_000 });
  const at = (params: string) => accepts(signMessage(body, { params }), verify);
  expect([at(`;created=${now - 10}`), at(`;created=${now - 11}`)]).toEqual([true, false]);
  expect([at(`;created=${now + 10}`), at(`;created=${now + 11}`)]).toEqual([true, false]);
  expect([at(`;expires=${now}`), at(`;expires=${now - 1}`)]).toEqual([true, false]);
});

test('the method is that of the request', () => {
  const headers = signMessage(body, { values: { '@method': 'PUT' } });
  expect(accepts(headers, verifier(), 'PUT')).toBe(true);
  expect(accepts(headers, verifier(), 'put')).toBe(false);
  expect(accepts(headers, verifier(), undefined)).toBe(false);
});

test('during a rotation each of several keys is tried, whatever the id of the key is', () => {
  const verify = verifier({ publicKeys: [toPem(foreign), undefined, toPem(p256), toPem(rsa)] });
  expect(accepts(signMessage(body), verify)).toBe(true);
  expect(accepts(signMessage(body, { keys: foreign }), verify)).toBe(true);
  expect(accepts(signMessage(body, { keys: keyPairs.p384[0], hash: 'sha384', params: created }), verify)).toBe(false);
});

test('no header of a stranger makes it throw, or is accepted that was not signed', () => {
  const signed = signMessage(body);
  const verify = verifier();
  const names = ['Signature', 'Signature-Input', 'Content-Digest'] as const;
  const wild = fc.string({ unit: fc.constantFrom(...'();="\\:,@ \taz09-é\u00ff*'.split('')), maxLength: 20 });
  const change = fc.record({ name: fc.constantFrom(...names), at: fc.nat(), length: fc.nat({ max: 12 }), put: wild });
  const property = fc.property(change, ({ name, at, length, put }) => {
    const value = String(signed[name]);
    const from = at % value.length;
    const changed = value.slice(0, from) + put + value.slice(from + length);
    if (changed !== value) expect(accepts({ ...signed, [name]: changed }, verify)).toBe(false);
  });
  fc.assert(property, { numRuns: 1_000 });
});
