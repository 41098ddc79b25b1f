import { describe, expect, test } from 'vitest';
import { basicAuth, headerToken, hmacSignature, ipAllowList, transferToken, urlToken } from 'transfer-callbacks';
import { containing } from '../../support/containing.js';

const secret = 'first-secret-0123456789';
const older = 'older-secret-0123456789';

describe('a verifier that cannot be made', () => {
  const long = 'a string of at least 16 characters, as `openssl rand -hex 32` prints, or several';
  const characters = 'made of letters, digits, `-`, `.`, `_` and `~`';
  const short = 'hunter2hunter2h';
  const spaced = 'hunter2 hunter2 hunter2';
  const list = 'a list of at least one address or range';
  const range = 'an IP address or a CIDR range';

  const wrong: [string, () => unknown, string][] = [
    ['urlToken of nothing', () => urlToken(undefined), `Expected \`secret\` to be ${long}, got undefined.`],
    [
      'transferToken of two that are both missing',
      () => transferToken([undefined, undefined]),
      `Expected \`secret\` to be ${long}, got undefined.`,
    ],
    [
      'transferToken whose older one is empty',
      () => transferToken([secret, '']),
      `Expected \`secret\` to be ${long}, got a string of 0 characters.`,
    ],
    ...[`${secret}é`, `${secret}\u007f`, ` ${secret}`, `${secret} `].map((text): [string, () => unknown, string] => [
      `headerToken of ${JSON.stringify(text)}`,
      () => headerToken('X-Token', [older, text]),
      `Expected \`secret\` to be made of ASCII characters, without a space at its ends, got a string of ${text.length} characters.`,
    ]),
    ['urlToken too short', () => urlToken(short), `Expected \`secret\` to be ${long}, got a string of 15 characters.`],
    [
      'urlToken with a space',
      () => urlToken(spaced),
      `Expected \`secret\` to be ${characters}, got a string of 23 characters.`,
    ],
    [
      'urlToken with a slash',
      () => urlToken(`${secret}/`),
      `Expected \`secret\` to be ${characters}, got a string of 24 characters.`,
    ],
    [
      'urlToken with a newline',
      () => urlToken(`${secret}\n`),
      `Expected \`secret\` to be ${characters}, got a string of 24 characters.`,
    ],
    [
      'headerToken too short',
      () => headerToken('X-Token', short),
      `Expected \`secret\` to be ${long}, got a string of 15 characters.`,
    ],
    [
      'headerToken without a name',
      () => headerToken('', secret),
      'Expected `name` to be a header name, got a string of 0 characters.',
    ],
    [
      'headerToken of a bad name',
      () => headerToken('X Token', secret),
      'Expected `name` to be a header name, got a string of 7 characters.',
    ],
    [
      'headerToken of a header that Node parses into a list',
      () => headerToken('Set-Cookie', secret),
      'Expected `name` to be a header that every host passes on unchanged, got a string of 10 characters.',
    ],
    [
      'headerToken of a header that ends at a proxy',
      () => headerToken('TE', secret),
      'Expected `name` to be a header that every host passes on unchanged, got a string of 2 characters.',
    ],
    [
      'basicAuth of none',
      () => basicAuth([] as never),
      'Expected `credentials` to be at least one pair, got an array.',
    ],
    [
      'basicAuth whose password is missing',
      () => basicAuth({ username: 'service', password: undefined }),
      'Expected `password` to be a string of at least 16 characters, as `openssl rand -hex 32` prints, got undefined.',
    ],
    [
      'basicAuth whose name is missing',
      () => basicAuth({ username: undefined, password: spaced }),
      'Expected `username` to be a string of at least one character and without a colon, got undefined.',
    ],
    [
      'basicAuth with an empty name',
      () => basicAuth({ username: '', password: spaced }),
      'Expected `username` to be a string of at least one character and without a colon, got a string of 0 characters.',
    ],
    [
      'basicAuth of name and password in one text',
      () => basicAuth('service:hunter2' as never),
      'Expected `credentials` to be an object or a list of them, got a string of 15 characters.',
    ],
    [
      'basicAuth with a short password',
      () => basicAuth({ username: 'service', password: 'hunter2-hunter2' }),
      'Expected `password` to be a string of at least 16 characters, as `openssl rand -hex 32` prints, got a string of 15 characters.',
    ],
    [
      'basicAuth with one word more',
      () => basicAuth({ username: 'service', password: spaced, realm: 'x' } as never),
      'Unknown option `realm`; known are username, password.',
    ],
    [
      'hmacSignature of nothing',
      () => hmacSignature(undefined as never),
      'Expected `options` to be an object, got undefined.',
    ],
    ...(
      [
        [{ header: undefined }, "`header` to be a header name, got undefined. Write `header: 'x-signature'`"],
        [{ header: 'cookie' }, '`header` to be a header that every host passes on unchanged, got a string of 6'],
        [{ secrets: undefined }, `\`secrets\` to be ${long}, got undefined.`],
        [{ secrets: [secret, short] }, `\`secrets\` to be ${long}, got a string of 15 characters.`],
        [{ secretEncoding: 'hex', secrets: spaced }, '`secrets` to be written in hex, got a string of 23 characters.'],
        [{ secretEncoding: 'hex', secrets: '0'.repeat(17) }, '`secrets` to be written in hex, got a string of 17'],
        [{ secretEncoding: 'base64', secrets: spaced }, '`secrets` to be written in base64, got a string of 23'],
        [{ secretEncoding: 'latin1' }, "`secretEncoding` to be 'utf8' or 'base64' or 'hex', got \"latin1\"."],
        [{ algorithm: 'sha1' }, "`algorithm` to be 'sha256' or 'sha384' or 'sha512', got \"sha1\"."],
        [{ encoding: 'base32' }, "`encoding` to be 'hex' or 'base64', got \"base32\"."],
        [
          { signed: 7 },
          "`signed` to be a text with {body}, and without {timestamp}, got a number. Write `signed: '{body}'`",
        ],
        [
          { signed: '{timestamp}.{body}' },
          '`signed` to be a text with {body}, and without {timestamp}, got a string of 18',
        ],
        [{ signed: '{x-id}' }, '`signed` to be a text with {body}, and without {timestamp}, got a string of 6'],
        [{ signed: '{body}{a b}' }, '`signed` to be a header name, got a string of 3 characters.'],
        [
          { timestamp: 't=', signed: '{body}' },
          '`signed` to be a text with {body}, and with {timestamp}, got a string of 6',
        ],
        [{ timestamp: 't =', signed: '{timestamp}{body}' }, '`timestamp` to be a header name, got a string of 3'],
        [{ toleranceMs: 0 }, '`toleranceMs` to be a whole number from 1 to 2147483647, got 0.'],
      ] as const
    ).map(([wrong, message]): [string, () => unknown, string] => [
      `hmacSignature of ${JSON.stringify(wrong)}`,
      () => hmacSignature({ header: 'x-signature', secrets: secret, ...wrong } as never),
      `Expected ${message}`,
    ]),
    [
      'hmacSignature with one word more',
      () => hmacSignature({ header: 'x-signature', secret } as never),
      'Unknown option `secret`; known are header, secrets, secretEncoding, algorithm, encoding, signed, timestamp, toleranceMs.',
    ],
    [
      'ipAllowList of nothing',
      () => ipAllowList(undefined as never),
      `Expected \`addresses\` to be ${list}, got undefined.`,
    ],
    [
      'ipAllowList of a text',
      () => ipAllowList('127.0.0.1' as never),
      `Expected \`addresses\` to be ${list}, got "127.0.0.1".`,
    ],
    ['ipAllowList of none', () => ipAllowList([]), `Expected \`addresses\` to be ${list}, got an array.`],
    ...['localhost', '1.2.3.4/33', '1.2.3.4/', '1.2.3.4/-1', '1.2.3.4/8/8', '1.2.3.4/1e1'].map(
      (entry): [string, () => unknown, string] => [
        `ipAllowList of ${JSON.stringify(entry)}`,
        () => ipAllowList(['127.0.0.1', entry]),
        `Expected \`addresses[1]\` to be ${range}, got ${JSON.stringify(entry)}.`,
      ],
    ),
    [
      'ipAllowList of an IPv6 range that is none',
      () => ipAllowList(['127.0.0.1', '::1/129']),
      `Expected \`addresses[1]\` to be ${range}, got a string of 7 characters.`,
    ],
    ['ipAllowList of a number', () => ipAllowList([1 as never]), `Expected \`addresses[0]\` to be ${range}, got 1.`],
  ];

  test.each(wrong)('the error for %s names what was expected', (_what, make, message) => {
    expect(make).toThrow(
      expect.objectContaining({
        name: 'TransferCallbackError',
        code: 'INVALID_ARGUMENT',
        message: containing(message),
      }),
    );
    expect(message).not.toMatch(/hunter2|first-secret/);
  });
});
