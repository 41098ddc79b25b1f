import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import {
  basicAuth,
  headerToken,
  hmacSignature,
  ipAllowList,
  messageSignature,
  publicKeySignature,
  transferToken,
  urlToken,
} from 'transfer-callbacks';
import { containing } from '../../support/helpers/containing.js';
import { keyPairs, toPem } from './keys.js';

const secret = 'first-secret-0123456789';
const older = 'older-secret-0123456789';
const short = 'hunter2hunter2h';
const spaced = 'hunter2 hunter2 hunter2';

const secretLength = 'a string of at least 16 characters without blanks at its ends';
const long = `${secretLength}, or several`;
const inUrls = 'made of letters, digits, `-`, `.`, `_` and `~`';
const inHeaders = 'made of ASCII characters';
const aName = 'a header name';
const aKeptName = 'a header that every host passes on unchanged';
const aUsername = 'a string of at least one character and without a colon';
const list = 'a list of at least one address or range';
const range = 'an IP address or a CIDR range';
const text = (length: number): string => `a string of ${length} characters`;
const signedHeader = 'a string with the header `x-id`, which is signed, in visible ASCII characters';
const hmac =
  (changed: object): (() => unknown) =>
  () =>
    hmacSignature({ header: 'x-signature', secrets: secret, ...changed });

const aKey = 'a public key of RSA with at least 2048 bits, ECDSA P-256 or P-384, or Ed25519, in PEM';
const aUrl = 'an absolute http or https URL';
const names =
  'a list of header names in lower case and of @method, @authority, @path, @query, @request-target, @scheme, @target-uri';
const publicKeys = toPem(keyPairs.ed25519[0]);
const byKey =
  (changed: object): (() => unknown) =>
  () =>
    publicKeySignature({ header: 'x-signature', publicKeys, ...changed });
const byMessage =
  (changed: object): (() => unknown) =>
  () =>
    messageSignature({ publicKeys, url: 'https://merchant.example/callbacks', ...changed });
const pem = {
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
} as const;
const privateKey = keyPairs.ed25519[0].privateKey.export(pem.privateKeyEncoding).toString();
/** Keys that no verifier takes. */
const wrongKeys: [string, unknown][] = [
  ['a private key', privateKey],
  ['a short key of RSA', generateKeyPairSync('rsa', { modulusLength: 1_024, ...pem }).publicKey],
  ['a key of RSA for PSS only', generateKeyPairSync('rsa-pss', { modulusLength: 2_048, ...pem }).publicKey],
  ['a key of another curve', generateKeyPairSync('ec', { namedCurve: 'secp256k1', ...pem }).publicKey],
  ['a key of Ed448', generateKeyPairSync('ed448', pem).publicKey],
  ['a key that signs nothing', generateKeyPairSync('x25519', pem).publicKey],
  ['two keys in one text', publicKeys + publicKeys],
  ['a key before a private key', publicKeys + privateKey],
  ['a key that is cut', publicKeys.replace(/.{4}(?=\n-----END)/, '')],
  ['a key without its lines', publicKeys.replace(/-----.*?-----\n?/g, '')],
  ['a secret', spaced],
];

const wrong: [what: string, make: () => unknown, option: string, expected: string, got: string][] = [
  ['urlToken of nothing', () => urlToken(undefined), 'secret', long, 'undefined'],
  ['urlToken too short', () => urlToken(short), 'secret', long, text(15)],
  ['urlToken with a space', () => urlToken(spaced), 'secret', inUrls, text(23)],
  ['urlToken with a slash', () => urlToken(`${secret}/`), 'secret', inUrls, text(24)],
  ['urlToken with a newline', () => urlToken(`${secret}\n`), 'secret', long, text(24)],
  ['transferToken of two missing', () => transferToken([undefined, undefined]), 'secret', long, 'undefined'],
  ['transferToken whose older one is empty', () => transferToken([secret, '']), 'secret', long, 'an empty string'],
  ['headerToken too short', () => headerToken('X-Token', short), 'secret', long, text(15)],
  ['headerToken that begins without ASCII', () => headerToken('X-Token', `é${secret}`), 'secret', inHeaders, text(24)],
  ['headerToken without ASCII', () => headerToken('X-Token', [older, `${secret}é`]), 'secret', inHeaders, text(24)],
  ['headerToken with DEL', () => headerToken('X-Token', `${secret}\u007f`), 'secret', inHeaders, text(24)],
  ['headerToken with a space first', () => headerToken('X-Token', ` ${secret}`), 'secret', long, text(24)],
  ['headerToken with a space last', () => headerToken('X-Token', `${secret} `), 'secret', long, text(24)],
  ['headerToken without a name', () => headerToken('', secret), 'name', aName, text(0)],
  ['headerToken of a bad name', () => headerToken('X Token', secret), 'name', aName, text(7)],
  ['headerToken of what Node makes a list', () => headerToken('Set-Cookie', secret), 'name', aKeptName, text(10)],
  ['headerToken of what ends at a proxy', () => headerToken('TE', secret), 'name', aKeptName, text(2)],
  ['basicAuth of none', () => basicAuth([] as never), 'credentials', 'at least one pair', 'an array'],
  ['basicAuth of one text', () => basicAuth('a:b' as never), 'credentials', 'an object or a list of them', text(3)],
  ...(
    [
      [{ password: undefined }, 'password', secretLength, 'undefined'],
      [{ password: short }, 'password', secretLength, text(15)],
      [{ username: undefined }, 'username', aUsername, 'undefined'],
      [{ username: '' }, 'username', aUsername, text(0)],
    ] as const
  ).map(([changed, ...message]): (typeof wrong)[number] => [
    `basicAuth of ${JSON.stringify(changed)}`,
    () => basicAuth({ username: 'service', password: spaced, ...changed }),
    ...message,
  ]),
  ['hmacSignature of nothing', () => hmacSignature(undefined as never), 'options', 'an object', 'undefined'],
  ...(
    [
      [{ header: undefined }, 'header', aName, "undefined. Write `header: 'x-signature'`"],
      [{ header: 'cookie' }, 'header', aKeptName, text(6)],
      [{ secrets: undefined }, 'secrets', long, 'undefined'],
      [{ secrets: '' }, 'secrets', long, 'an empty string'],
      [{ secrets: `${secret}\n` }, 'secrets', long, text(24)],
      [{ secretEncoding: 'base64', secrets: `A${'='.repeat(15)}` }, 'secrets', 'at least 16 bytes in base64', text(16)],
      [{ secretEncoding: 'hex', secrets: '0'.repeat(30) }, 'secrets', 'at least 16 bytes in hex', text(30)],
      [{ secrets: [secret, short] }, 'secrets', long, text(15)],
      [{ secretEncoding: 'hex', secrets: spaced }, 'secrets', 'written in hex', text(23)],
      [{ secretEncoding: 'hex', secrets: '0'.repeat(17) }, 'secrets', 'written in hex', text(17)],
      [{ secretEncoding: 'base64', secrets: spaced }, 'secrets', 'written in base64', text(23)],
      [{ secretEncoding: 'latin1' }, 'secretEncoding', "'utf8' or 'base64' or 'hex'", '"latin1"'],
      [{ algorithm: 'sha1' }, 'algorithm', "'sha256' or 'sha384' or 'sha512'", '"sha1"'],
      [{ encoding: 'base32' }, 'encoding', "'hex' or 'base64'", '"base32"'],
      [{ signed: 7 }, 'signed', 'a string with {body}, and without {timestamp}', "a number. Write `signed: '{body}'`"],
      [{ signed: '{timestamp}.{body}' }, 'signed', 'a string with {body}, and without {timestamp}', text(18)],
      [{ signed: '{x-id}' }, 'signed', 'a string with {body}, and without {timestamp}', text(6)],
      [{ signed: 'body' }, 'signed', 'a string with {body}, and without {timestamp}', text(4)],
      [{ signed: '{body}{a b}' }, 'signed', aName, text(3)],
      [{ timestamp: 't=', signed: '{body}' }, 'signed', 'a string with {body}, and with {timestamp}', text(6)],
      [{ timestamp: 't =', signed: '{timestamp}{body}' }, 'timestamp', aName, text(3)],
      [{ timestamp: '-t=', signed: '{timestamp}{body}' }, 'timestamp', aName, text(3)],
      [{ timestamp: 't=1', signed: '{timestamp}{body}' }, 'timestamp', aName, text(3)],
      [{ timestamp: undefined }, 'timestamp', aName, "undefined. Write `timestamp: 'x-timestamp'`"],
      [{ toleranceMs: 0 }, 'toleranceMs', 'a whole number from 1 to 2147483647', '0'],
    ] as const
  ).map(([changed, ...message]): (typeof wrong)[number] => [
    `hmacSignature of ${JSON.stringify(changed)}`,
    hmac(changed),
    ...message,
  ]),
  ...(
    [
      ['of a short secret', {}, ['x', { secret: short }], 'secret', long, text(15)],
      ['of no secret for a function', { secrets: () => secret }, ['x'], 'secret', long, 'undefined'],
      [
        'of a secret in another encoding',
        { secretEncoding: 'hex', secrets: '0'.repeat(32) },
        ['x', { secret: spaced }],
        'secret',
        'written in hex',
        text(23),
      ],
      ['of an object', {}, [{ secret }], 'body', 'the string or the bytes that are sent', 'an object'],
      ['without a signed header', { signed: '{x-id}{body}' }, ['x'], 'headers', signedHeader, 'undefined'],
      [
        'of a header that HTTP trims',
        { signed: '{x-id}{body}' },
        ['x', { headers: { 'X-Id': '7 ' } }],
        'headers',
        signedHeader,
        text(2),
      ],
    ] as const
  ).map(([what, changed, args, ...message]): (typeof wrong)[number] => [
    `sign ${what}`,
    () =>
      hmacSignature({ header: 'x-signature', secrets: secret, ...changed } as never).sign(
        ...(args as unknown as [string]),
      ),
    ...message,
  ]),
  ...[publicKeySignature, messageSignature].map((make): (typeof wrong)[number] => [
    `${make.name} of nothing`,
    () => make(undefined as never),
    ...(['options', 'an object', 'undefined'] as const),
  ]),
  ...[byKey, byMessage].flatMap((make) => [
    ...wrongKeys.map(([what, key]): (typeof wrong)[number] => [
      `${make.name} of ${what}`,
      make({ publicKeys: [publicKeys, key] }),
      ...(['publicKeys', aKey, text(String(key).length)] as const),
    ]),
    ...(
      [
        [{ publicKeys: undefined }, 'publicKeys', aKey, 'undefined'],
        [{ publicKeys: '' }, 'publicKeys', aKey, 'an empty string'],
        [{ publicKeys: [] }, 'publicKeys', aKey, 'undefined'],
        [{ publicKeys: [undefined, publicKeys] }, 'publicKeys', aKey, 'undefined'],
        [{ publicKeys: [publicKeys, ''] }, 'publicKeys', aKey, 'an empty string'],
        [{ publicKeys: keyPairs.rsa[0].publicKey }, 'publicKeys', aKey, 'an object'],
        [{ toleranceMs: 0.5 }, 'toleranceMs', 'a whole number from 1 to 2147483647', '0.5'],
      ] as const
    ).map(([changed, ...message]): (typeof wrong)[number] => [
      `${make.name} of ${JSON.stringify(changed).slice(0, 60)}`,
      make(changed),
      ...message,
    ]),
  ]),
  ...(
    [
      [byKey({ header: 'a b' }), 'header', aName, text(3)],
      [byKey({ encoding: 'utf8' }), 'encoding', "'hex' or 'base64'", '"utf8"'],
      [byKey({ signed: '' }), 'signed', 'a string with {body}, and without {timestamp}', text(0)],
      [byMessage({ url: undefined }), 'url', aUrl, 'undefined'],
      [byMessage({ url: '/callbacks' }), 'url', aUrl, '"/callbacks"'],
      [byMessage({ url: 'ftp://merchant.example/hunter2' }), 'url', aUrl, text(30)],
      [byMessage({ covered: '@method' }), 'covered', names, text(7)],
      [byMessage({ covered: ['@method', '@status'] }), 'covered', names, 'an array'],
      [byMessage({ covered: ['Content-Type'] }), 'covered', names, 'an array'],
      [byMessage({ covered: [['date']] }), 'covered', names, 'an array'],
      [byMessage({ covered: ['date;req'] }), 'covered', names, 'an array'],
    ] as const
  ).map(([make, ...message]): (typeof wrong)[number] => [
    `a signature with ${message[0]} ${message[2]}`,
    make,
    ...message,
  ]),
  ['ipAllowList of nothing', () => ipAllowList(undefined as never), 'addresses', list, 'undefined'],
  ['ipAllowList of a text', () => ipAllowList('127.0.0.1' as never), 'addresses', list, '"127.0.0.1"'],
  ['ipAllowList of none', () => ipAllowList([]), 'addresses', list, 'an array'],
  ['ipAllowList of a number', () => ipAllowList([1 as never]), 'addresses[0]', range, '1'],
  ['ipAllowList of ::1/129', () => ipAllowList(['127.0.0.1', '::1/129']), 'addresses[1]', range, text(7)],
  ...['localhost', '1.2.3.4/33', '1.2.3.4/', '1.2.3.4/-1', '1.2.3.4/8/8', '1.2.3.4/1e1'].map(
    (entry): (typeof wrong)[number] => [
      `ipAllowList of ${entry}`,
      () => ipAllowList(['127.0.0.1', entry]),
      'addresses[1]',
      range,
      JSON.stringify(entry),
    ],
  ),
];

test.each(wrong)('the error for %s names what was expected', (_what, make, option, expected, got) => {
  const message = `Expected \`${option}\` to be ${expected}, got ${got}.`;
  expect(make).toThrow(
    expect.objectContaining({ name: 'TransferCallbackError', code: 'INVALID_ARGUMENT', message: containing(message) }),
  );
  expect(make).not.toThrow(/hunter2|first-secret|KEY-----|MC[ow]|MII/);
});

test.each([
  ['urlToken', () => urlToken(undefined)],
  ['headerToken', () => headerToken('X-Token', '')],
  ['basicAuth', () => basicAuth({ username: 'service', password: undefined })],
  ['hmacSignature', hmac({ secrets: undefined })],
  ['publicKeySignature', byKey({ publicKeys: undefined })],
  ['messageSignature', byMessage({ publicKeys: '' })],
])('the error of %s for a secret that is not set asks for its variable, and tells to write no code', (_name, make) => {
  expect(make).toThrow(/, got (undefined|an empty string)\. Is its environment variable set\?$/);
});

const makeSecret = 'Write the output of `openssl rand -hex 32` into its environment variable.';

test.each<[string, () => unknown, string]>([
  ['urlToken', () => urlToken(short), makeSecret],
  ['urlToken of Base64', () => urlToken('ab/cd+ef/gh+ij/kl+mn=='), makeSecret],
  ['transferToken', () => transferToken(short), makeSecret],
  ['headerToken', () => headerToken('X-Token', `${secret}é`), makeSecret],
  ['basicAuth', () => basicAuth({ username: 'service', password: short }), makeSecret],
  // The service has chosen this one.
  ['hmacSignature', hmac({ secrets: short }), 'Correct its environment variable.'],
  ['publicKeySignature', byKey({ publicKeys: short }), 'Correct its environment variable.'],
  ['hmacSignature in hex', hmac({ secretEncoding: 'hex', secrets: spaced }), 'Correct its environment variable.'],
])('the error of %s for a wrong secret tells what to write into its variable, and no code', (_name, make, remedy) => {
  expect(make).toThrow(`characters. ${remedy}`);
});

test('a private key in place of a public one is named as such, and is not shown', () => {
  for (const pem of [privateKey, privateKey.replaceAll('\n', '\\n')]) {
    const make = () => publicKeySignature({ header: 'x-signature', publicKeys: pem });
    expect(make).toThrow('This is a private key. Give the public key of the service.');
    expect(make).not.toThrow(/BEGIN|MII|MC4/);
  }
});
