import { createHmac } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  basicAuth,
  headerToken,
  ipAllowList,
  memoryStore,
  transferToken,
  urlToken,
  type CallbackStore,
  type TransferCallback,
  type Verifier,
} from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import {
  edges,
  errorBody,
  expressEdges,
  post,
  witness,
  type Edge,
  type Sent,
  type Surroundings,
} from '../support/http.js';

const unauthorized = errorBody(401, 'The sender is not verified.');
const secret = 'first-secret-0123456789';
const older = 'older-secret-0123456789';

/** A started edge with this verifier, and what has reached the store and the handler. */
async function guarded(edge: Edge, verify: unknown, surroundings?: Surroundings) {
  const { options, handled, logged } = witness();
  const memory = memoryStore();
  const claims: string[] = [];
  const store: CallbackStore = {
    claim(key, request) {
      claims.push(key);
      return memory.claim(key, request);
    },
  };
  const started = await edge.start({ ...options, store, verify: verify as Verifier }, surroundings);
  onTestFinished(started.close);
  const { url } = started;

  return {
    url,
    logged,
    admits: async (at: string, sent?: Sent, callback: TransferCallback = transferSucceeded()): Promise<void> => {
      const answer = await post(at, callback, sent);
      expect([answer.status, answer.body]).toEqual([200, '{"outcome":"processed"}']);
      expect(handled.at(-1)).toEqual(callback);
    },
    refuses: async (at: string, sent?: Sent, callback: unknown = transferSucceeded()): Promise<void> => {
      const before = [claims.length, handled.length];
      const answer = await post(at, callback, sent);
      expect([answer.status, answer.body]).toEqual([401, unauthorized]);
      expect([claims.length, handled.length]).toEqual(before);
    },
  };
}

describe.each(edges)('on $name', (edge) => {
  describe('urlToken', () => {
    test('admits its secret as the last segment, and nothing else', async () => {
      const { url, admits, refuses } = await guarded(edge, urlToken(secret));
      await admits(`${url}/${secret}`);
      await admits(`${url}/${secret}?utm=1&x=/other`);
      await admits(`${url}/${secret}/`);
      await admits(`${url}/${secret}/?utm=1`);
      for (const wrong of [
        '',
        '/',
        '/wrong',
        `/${secret}x`,
        `/x${secret}`,
        `/${secret.slice(0, -1)}`,
        `/${secret.toUpperCase()}`,
        `/%66${secret.slice(1)}`,
        `?token=${secret}`,
        `?x=/${secret}`,
        `/wrong?x=/${secret}`,
        `/${'x'.repeat(5_000)}`,
      ]) {
        await refuses(url + wrong);
      }
    });

    test('admits each of several secrets while one replaces the other', async () => {
      const { url, admits, refuses } = await guarded(edge, urlToken([secret, older]));
      await admits(`${url}/${secret}`);
      await admits(`${url}/${older}`);
      await refuses(`${url}/${secret}${older}`);
    });

    test('an older secret that is not set is left out', async () => {
      const { url, admits, refuses } = await guarded(edge, urlToken([secret, undefined]));
      await admits(`${url}/${secret}`);
      await refuses(`${url}/undefined`);
      await refuses(`${url}/`);
    });

    test('knows every character that a URL carries as it is', async () => {
      const odd = 'aZ09-._~aZ09-._~';
      const { url, admits } = await guarded(edge, urlToken(odd));
      await admits(`${url}/${odd}`);
    });
  });

  describe('transferToken', () => {
    const verify = transferToken([secret, older]);

    test.each([
      'payout-1',
      'with spaces and / slashes?',
      '../..',
      '..',
      '%2F%00',
      'é 付款 😀',
      '\u0000\n',
      '‮rtl',
      'x'.repeat(5_000),
      '{"quoted":"\'"}',
    ])('admits the transfer that the address was made for: %j', async (externalId) => {
      const { url, admits, refuses } = await guarded(edge, verify);
      const callback = transferSucceeded({ externalId });
      await admits(verify.urlFor(url, externalId), {}, callback);
      const withSlash = transferSucceeded({ externalId });
      await admits(`${verify.urlFor(url, externalId)}/`, {}, withSlash);
      await refuses(verify.urlFor(url, `${externalId} `), {}, callback);
      await refuses(verify.urlFor(url, 'payout-2'), {}, callback);
      await refuses(url, {}, callback);
    });

    test('an address that leaked forges no other transfer, but the failure of its own it cannot tell', async () => {
      const { url, admits, refuses } = await guarded(edge, verify);
      const leaked = verify.urlFor(url, 'payout-1');
      await refuses(leaked, {}, transferFailed({ externalId: 'payout-2' }));
      await admits(leaked, {}, transferFailed({ externalId: 'payout-1' }));
    });

    test('addresses made with the older secret stay good while it is on the list', async () => {
      const { url, admits } = await guarded(edge, verify);
      await admits(transferToken(older).urlFor(url, 'payout-1'), {}, transferSucceeded({ externalId: 'payout-1' }));
      const { url: strict, refuses } = await guarded(edge, transferToken(secret));
      await refuses(transferToken(older).urlFor(strict, 'payout-1'), {}, transferSucceeded({ externalId: 'payout-1' }));
    });

    test('refuses what has no externalId to check', async () => {
      const { url, refuses } = await guarded(edge, verify);
      const address = verify.urlFor(url, 'payout-1');
      const { event, data } = transferSucceeded({ externalId: 'payout-1' });
      await refuses(address, {}, { event, data: { ...data, externalId: undefined } });
      await refuses(address, {}, { event, data: { ...data, amount: 'all' } });
      await refuses(address, {}, 'not JSON');
    });
  });

  describe('headerToken', () => {
    test('admits its secret in its header, whatever the case of the name', async () => {
      const { url, admits, refuses } = await guarded(edge, headerToken('X-Callback-Token', [secret, older]));
      await admits(url, { headers: { 'x-callback-token': secret } });
      await admits(url, { headers: { 'X-CALLBACK-TOKEN': older } });
      await refuses(url);
      for (const value of [
        '',
        'wrong',
        `${secret}x`,
        `Bearer ${secret}`,
        secret.toUpperCase(),
        `${secret}, ${older}`,
      ]) {
        await refuses(url, { headers: { 'X-Callback-Token': value } });
      }
      await refuses(url, { headers: { 'X-Callback-Token': [secret, secret] } });
      await refuses(url, { headers: { 'X-Other-Token': secret } });
    });

    test('knows every character that a header carries as it is', async () => {
      const visible = String.fromCharCode(...Array.from({ length: 95 }, (_, at) => 32 + at)).trim();
      const { url, admits } = await guarded(edge, headerToken('X-Token', visible));
      await admits(url, { headers: { 'X-Token': visible } });
    });

    test('refuses a header that Node hands over as a list', async () => {
      const { url, refuses } = await guarded(edge, headerToken('Set-Cookie', secret));
      await refuses(url, { headers: { 'Set-Cookie': secret } });
    });

    test('names of fields that every object has are no header', async () => {
      const { url, refuses } = await guarded(edge, headerToken('constructor', secret));
      await refuses(url);
    });
  });

  describe('basicAuth', () => {
    const encoded = (text: string): string => Buffer.from(text).toString('base64');
    const pairs = [
      { username: 'service', password: 'new-password: é 付' },
      { username: 'service', password: 'old-password' },
    ] as const;

    test('admits each of its pairs', async () => {
      const { url, admits, refuses } = await guarded(edge, basicAuth(pairs));
      for (const { username, password } of pairs) {
        const token = encoded(`${username}:${password}`);
        for (const scheme of ['Basic', 'basic', 'BASIC', 'Basic  ']) {
          await admits(url, { headers: { Authorization: `${scheme} ${token}` } });
        }
      }
      for (const authorization of [
        undefined,
        '',
        'Basic',
        'Basic ',
        'Basic !!!!',
        `Basic ${encoded('service:wrong')}`,
        `Basic ${encoded('service')}`,
        `Basic ${encoded('service:')}`,
        `Basic ${encoded(':old-password')}`,
        `Basic ${encoded('Service:old-password')}`,
        `Basic ${encoded('service:old-password ')}`,
        `Basic ${encoded('service:old-password')} x`,
        `Bearer ${encoded('service:old-password')}`,
        'service:old-password',
        encoded('service:old-password'),
      ]) {
        await refuses(url, { headers: { Authorization: authorization } });
      }
    });

    test('admits what a client makes of an address with user and password', async () => {
      const { url, admits, refuses } = await guarded(edge, basicAuth({ username: 'service', password: 'p@ss' }));
      await admits(url.replace('//', '//service:p%40ss@'));
      await refuses(url.replace('//', '//service:pass@'));
    });
  });

  describe('ipAllowList', () => {
    test.each([
      [['127.0.0.1'], true],
      [['127.0.0.0/8'], true],
      [['203.0.113.7', '127.0.0.1/32'], true],
      [['::ffff:127.0.0.1'], true],
      [['0.0.0.0/0'], true],
      [['203.0.113.7'], false],
      [['127.0.0.2', '126.0.0.0/8', '::1'], false],
      [['fe80::/10', '2001:db8::/32'], false],
    ])('%j: the peer 127.0.0.1 is on it: %s', async (addresses, on) => {
      const { url, admits, refuses } = await guarded(edge, ipAllowList(addresses));
      await (on ? admits(url) : refuses(url));
      if (!on) await refuses(url, { headers: { 'X-Forwarded-For': addresses[0] } });
    });
  });

  describe('verifiers of one kind and another', () => {
    test('all of a list must say yes, asked in order until one says no', async () => {
      const asked: string[] = [];
      const says = (name: string, verdict: boolean) => () => {
        asked.push(name);
        return verdict;
      };
      const both = await guarded(edge, [urlToken(secret), headerToken('X-Token', older), says('last', true)]);
      await both.admits(`${both.url}/${secret}`, { headers: { 'X-Token': older } });
      await both.refuses(`${both.url}/${secret}`);
      await both.refuses(both.url, { headers: { 'X-Token': older } });
      expect(asked).toEqual(['last']);

      const stopped = await guarded(edge, [says('a', true), says('b', false), says('c', true)]);
      await stopped.refuses(stopped.url);
      expect(asked).toEqual(['last', 'a', 'b']);
    });

    test.each([
      ['true', () => true],
      ['true, later', () => Promise.resolve(true)],
      [
        'true, from a thenable',
        () => ({
          then: (resolve: (verdict: boolean) => void) => {
            resolve(true);
          },
        }),
      ],
    ])('one that answers %s admits', async (_what, verify) => {
      const { url, admits } = await guarded(edge, verify);
      await admits(url);
    });

    test.each([
      ['false', false],
      ['nothing', undefined],
      ['null', null],
      ['1', 1],
      ['a text', 'true'],
      ['an object', { ok: true }],
      ['an empty list', []],
      ['a Boolean object', Object(true) as unknown],
      ['a function', () => true],
      ['a symbol', Symbol('true')],
    ])('one that answers %s refuses, now or later', async (_what, verdict) => {
      for (const verify of [() => verdict, () => Promise.resolve(verdict)]) {
        const { url, refuses } = await guarded(edge, verify);
        await refuses(url);
      }
    });

    test.each([
      [
        'throws',
        () => {
          throw Object.assign(new Error('no keys today'), { status: 200 });
        },
      ],
      ['rejects', () => Promise.reject(new Error('no keys today'))],
    ])('one that %s refuses, and the log has the reason', async (_what, verify) => {
      const { url, refuses, logged } = await guarded(edge, verify);
      await refuses(url);
      expect(logged).toMatchObject([
        {
          level: 'warn',
          message: 'A transfer callback came from a sender that was not verified.',
          details: { outcome: 'unauthorized', err: { message: 'no keys today' } },
        },
      ]);
    });

    test('is given the request and the callback, or no callback when it is none', async () => {
      const asked: unknown[] = [];
      const { url } = await guarded(edge, (request: { url: string; method: string }, callback: unknown) => {
        asked.push([request.method, callback]);
        return true;
      });
      const callback = transferSucceeded();
      await post(url, callback);
      await post(url, { event: 'transfer.success' });
      await post(url, callback, { method: 'PUT' });
      expect(asked).toEqual([
        ['POST', callback],
        ['POST', undefined],
        ['PUT', undefined],
      ]);
    });
  });

  describe('a stranger learns nothing', () => {
    const requests: [string, unknown, Sent][] = [
      ['a callback', transferSucceeded(), {}],
      ['malformed JSON', '{"event":', {}],
      ['another event', { event: 'transfer.pending' }, {}],
      ['no body', '', {}],
      ['too long a body', 'x'.repeat(102_401), {}],
      ['another type', transferSucceeded(), { headers: { 'Content-Type': 'text/plain' } }],
      ['no type', transferSucceeded(), { headers: { 'Content-Type': undefined } }],
      ['another charset', transferSucceeded(), { headers: { 'Content-Type': 'application/json; charset=utf-16' } }],
      ['a compressed body', transferSucceeded(), { headers: { 'Content-Encoding': 'gzip' } }],
      ['bytes that are not UTF-8', Uint8Array.of(0x22, 0xff, 0x22), {}],
      ['GET', '', { method: 'GET' }],
      ['HEAD', '', { method: 'HEAD' }],
      ['PUT', transferSucceeded(), { method: 'PUT' }],
      ['OPTIONS', '', { method: 'OPTIONS' }],
    ];
    const verifiers: [string, Verifier][] = [
      ['urlToken', urlToken(secret)],
      ['transferToken', transferToken(secret)],
      ['headerToken', headerToken('X-Token', secret)],
      ['basicAuth', basicAuth({ username: 'service', password: 'password' })],
      ['ipAllowList', ipAllowList(['203.0.113.7'])],
    ];

    test.each(verifiers)('refused by %s, whatever was sent', async (_name, verify) => {
      const { url, refuses, logged } = await guarded(edge, verify);
      for (const [what, body, sent] of requests) {
        const answer = await post(url, body, sent);
        expect([what, answer.status, answer.body]).toEqual([what, 401, sent.method === 'HEAD' ? '' : unauthorized]);
        expect(answer.headers).not.toHaveProperty('allow');
      }
      await refuses(url);
      for (const { details } of logged) expect(details).toMatchObject({ outcome: 'unauthorized', source: 'http' });
    });

    test('neither from a settled callback nor from one in conflict', async () => {
      const { url, admits, refuses } = await guarded(edge, headerToken('X-Token', secret));
      const callback = transferSucceeded();
      await admits(url, { headers: { 'X-Token': secret } }, callback);
      await refuses(url, {}, callback);
      await refuses(url, {}, transferSucceeded({ ...callback.data, amount: 1 }));
    });

    test('and nothing of a secret is logged', async () => {
      const { url, refuses, logged } = await guarded(edge, [headerToken('X-Token', secret), urlToken(older)]);
      await refuses(url, { headers: { 'X-Token': secret } });
      await refuses(`${url}/${older}`);
      const text = JSON.stringify(logged);
      expect(logged).toHaveLength(2);
      expect(text).not.toContain(secret);
      expect(text).not.toContain(older);
    });
  });
});

describe.each(expressEdges)('ipAllowList on $name', (edge) => {
  const forwarded = (...addresses: string[]): Sent => ({ headers: { 'X-Forwarded-For': addresses.join(', ') } });

  test('without trust proxy, a forwarded address counts for nothing', async () => {
    const { url, refuses } = await guarded(edge, ipAllowList(['203.0.113.7']));
    await refuses(url, forwarded('203.0.113.7'));
  });

  test.each([
    ['1', 1],
    ['loopback', 'loopback'],
    ['a function', (address: string) => address === '127.0.0.1'],
    ['a function of the hop', (_address: string, hop: number) => hop < 1],
    ['a list of ranges', ['127.0.0.0/8', '10.0.0.0/8']],
  ])('with trust proxy %s, the address that the last proxy saw counts', async (_what, trust) => {
    const { url, admits, refuses } = await guarded(edge, ipAllowList(['203.0.113.0/24', '2001:db8::/32']), {
      settings: { 'trust proxy': trust },
    });
    await admits(url, forwarded('203.0.113.7'));
    await admits(url, forwarded('2001:db8::7'));
    await admits(url, forwarded('::ffff:203.0.113.7'));
    await admits(url, forwarded('::FFFF:203.0.113.7'));
    await admits(url, forwarded('::ffff:cb00:7107'));
    await admits(url, forwarded('198.51.100.1', '203.0.113.7'));
    await refuses(url, forwarded('203.0.113.7', '198.51.100.1'));
    await refuses(url, forwarded('198.51.100.1'));
    await refuses(url, forwarded('2001:db9::7'));
    await refuses(url, forwarded('::ffff:198.51.100.1'));
    await refuses(url, forwarded('203.0.113.7:443'));
    await refuses(url, forwarded('203.0.113'));
    await refuses(url, forwarded('unknown'));
    await refuses(url);
  });

  const everybody: [string, unknown][] = [
    ['true', true],
    ['a function that trusts everybody', () => true],
    ['a function that returns something truthy', () => 'yes'],
    ['both halves of all addresses', ['0.0.0.0/1', '128.0.0.0/1']],
    ['a hundred hops', 100],
  ];
  test.each(everybody)('with trust proxy %s nobody is let in, and the log says why', async (_what, trust) => {
    const { url, refuses, logged } = await guarded(edge, ipAllowList(['0.0.0.0/0', '::/0']), {
      settings: { 'trust proxy': trust },
    });
    await refuses(url);
    await refuses(url, forwarded('127.0.0.1'));
    expect(logged).toHaveLength(2);
    expect(logged[0]).toMatchObject({
      level: 'warn',
      details: {
        err: {
          code: 'INVALID_ARGUMENT',
          message:
            'ipAllowList needs `trust proxy` to name your proxies: as it is set, a sender may claim any address.',
        },
      },
    });
  });
});

describe('ipAllowList, asked about an address', () => {
  const asked = (entry: string, address: string | undefined): unknown =>
    ipAllowList([entry])({ ip: address, socket: {} } as never, undefined);

  test.each([
    ['203.0.113.7', '203.0.113.7', true],
    ['203.0.113.7', '203.0.113.8', false],
    ['203.0.113.7', '::ffff:203.0.113.7', true],
    ['203.0.113.7', '::203.0.113.7', false],
    ['203.0.113.0/24', '203.0.113.255', true],
    ['203.0.113.0/24', '203.0.114.0', false],
    ['203.0.113.7/24', '203.0.113.200', true],
    ['203.0.113.8/29', '203.0.113.15', true],
    ['203.0.113.8/29', '203.0.113.16', false],
    ['0.0.0.0/0', '255.255.255.255', true],
    ['2001:db8::1', '2001:db8:0:0::1', true],
    ['2001:DB8::1', '2001:db8::1', true],
    ['2001:db8::1', '2001:db8::2', false],
    ['2001:db8::/33', '2001:db8:7fff::1', true],
    ['2001:db8::/33', '2001:db8:8000::1', false],
    ['::1', '127.0.0.1', false],
    ['::ffff:203.0.113.7', '203.0.113.7', true],
    ['::ffff:203.0.113.0/120', '203.0.113.9', true],
    ['0.0.0.0/0', '2001:db8::1', false],
    ['0.0.0.0/0', '', false],
    ['0.0.0.0/0', undefined, false],
    ['0.0.0.0/0', 'localhost', false],
    ['0.0.0.0/0', '1.2.3', false],
    ['0.0.0.0/0', '01.2.3.4', false],
    ['0.0.0.0/0', '1.2.3.4 ', false],
  ])('%s lets %s in: %s', (entry, address, expected) => {
    expect(asked(entry, address)).toBe(expected);
  });
});

describe('transferToken.urlFor', () => {
  const made = transferToken([secret, older]);
  const urlFor = (base: string, externalId: string): string => made.urlFor(base, externalId);
  const token = createHmac('sha256', secret).update('payout-1').digest('base64url');

  test.each([
    ['https://shop.example', `https://shop.example/${token}`],
    ['https://shop.example/', `https://shop.example/${token}`],
    ['https://shop.example/callbacks', `https://shop.example/callbacks/${token}`],
    ['https://shop.example/callbacks/', `https://shop.example/callbacks/${token}`],
    ['https://shop.example:8443/a/b?tenant=7', `https://shop.example:8443/a/b/${token}?tenant=7`],
    ['https://shop.example/a/?tenant=/7/', `https://shop.example/a/${token}?tenant=/7/`],
    ['https://shop.example/a b/é', `https://shop.example/a%20b/%C3%A9/${token}`],
    ['http://user:pass@127.0.0.1:3000/a', `http://user:pass@127.0.0.1:3000/a/${token}`],
  ])('%s becomes %s', (base, expected) => {
    expect(urlFor(base, 'payout-1')).toBe(expected);
  });

  test.each(['', '/callbacks', 'shop.example/callbacks', '//shop.example', 'https://', 'http://[::'])(
    'the base %j is refused',
    (base) => {
      expect(() => urlFor(base, 'payout-1')).toThrow(/^Expected `base` to be /);
    },
  );

  // All of them are URLs to a parser, and none of them can carry the token.
  test.each(['localhost:3000/callbacks', 'mailto:a@shop.example', 'javascript:1', 'data:,x', 'file:///callbacks'])(
    'the base %s, which is no address of a web server, is refused',
    (base) => {
      expect(() => urlFor(base, 'payout-1')).toThrow(/^Expected `base` to be /);
    },
  );

  test.each([
    ['', '""'],
    [undefined, 'undefined'],
    [7, '7'],
  ])('the externalId %j is refused', (externalId, shown) => {
    expect(() => urlFor('https://shop.example', externalId as string)).toThrow(
      `Expected \`externalId\` to be a string of at least one character, got ${shown}.`,
    );
  });
});

describe('a verifier that cannot be made', () => {
  const long = 'a string of at least 16 characters, or several';
  const characters = 'made of letters, digits, `-`, `.`, `_` and `~`';
  const short = 'hunter2hunter2h';
  const spaced = 'hunter2 hunter2 hunter2';
  const list = 'a list of at least one address or range';
  const ranges = 'a list of IP addresses and CIDR ranges';

  const wrong: [string, () => unknown, string][] = [
    ['urlToken of nothing', () => urlToken(undefined), `Expected \`secret\` to be ${long}, got undefined.`],
    [
      'urlToken of an empty text',
      () => urlToken(''),
      `Expected \`secret\` to be ${long}, got a string of 0 characters.`,
    ],
    ['transferToken of nothing', () => transferToken(undefined), `Expected \`secret\` to be ${long}, got undefined.`],
    [
      'headerToken of nothing',
      () => headerToken('X-Token', undefined),
      `Expected \`secret\` to be ${long}, got undefined.`,
    ],
    [
      'transferToken of two that are both missing',
      () => transferToken([undefined, undefined]),
      `Expected \`secret\` to be ${long}, got undefined.`,
    ],
    [
      'transferToken of an old secret without a new one',
      () => transferToken([undefined, older]),
      `Expected \`secret\` to be ${long}, got undefined.`,
    ],
    [
      'transferToken whose older one is empty',
      () => transferToken([secret, '']),
      `Expected \`secret\` to be ${long}, got a string of 0 characters.`,
    ],
    [
      'transferToken whose older one is null',
      () => transferToken([secret, null as never]),
      `Expected \`secret\` to be ${long}, got null.`,
    ],
    ...[`${secret}é`, `${secret}付`, `${secret}\u007f`, `${secret}\n`, ` ${secret}`, `${secret} `].map(
      (text): [string, () => unknown, string] => [
        `headerToken of ${JSON.stringify(text)}`,
        () => headerToken('X-Token', [older, text]),
        `Expected \`secret\` to be made of ASCII characters, without a space at its ends, got a string of ${text.length} characters.`,
      ],
    ),
    ['urlToken too short', () => urlToken(short), `Expected \`secret\` to be ${long}, got a string of 15 characters.`],
    ['urlToken of none', () => urlToken([] as never), `Expected \`secret\` to be ${long}, got undefined.`],
    [
      'urlToken with one too short',
      () => urlToken([secret, short]),
      `Expected \`secret\` to be ${long}, got a string of 15 characters.`,
    ],
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
    ['urlToken of an object', () => urlToken({ secret } as never), `Expected \`secret\` to be ${long}, got an object.`],
    [
      'transferToken too short',
      () => transferToken(short),
      `Expected \`secret\` to be ${long}, got a string of 15 characters.`,
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
      'headerToken of no name',
      () => headerToken(undefined as never, secret),
      'Expected `name` to be a header name, got undefined.',
    ],
    [
      'basicAuth of none',
      () => basicAuth([] as never),
      'Expected `credentials` to be at least one pair, got an array.',
    ],
    [
      'basicAuth whose password is missing',
      () => basicAuth({ username: 'service', password: undefined }),
      'Expected `password` to be a string of at least one character, got undefined.',
    ],
    [
      'basicAuth whose name is missing',
      () => basicAuth({ username: undefined, password: spaced }),
      'Expected `username` to be a string of at least one character and without a colon, got undefined.',
    ],
    [
      'basicAuth of null',
      () => basicAuth(null as never),
      'Expected `credentials` to be an object or a list of them, got null.',
    ],
    [
      'basicAuth without a password',
      () => basicAuth({ username: 'service', password: '' }),
      'Expected `password` to be a string of at least one character, got a string of 0 characters.',
    ],
    [
      'basicAuth with half a pair',
      () => basicAuth({ username: 'service' } as never),
      'Expected `password` to be a string of at least one character, got undefined.',
    ],
    [
      'basicAuth with one word more',
      () => basicAuth({ username: 'service', password: spaced, realm: 'x' } as never),
      'Unknown option `realm`; known are username, password.',
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
    ...[
      '',
      'localhost',
      '1.2.3',
      '1.2.3.4/33',
      '1.2.3.4/',
      '1.2.3.4/-1',
      '1.2.3.4/8/8',
      '1.2.3.4/x',
      '::1/129',
      '1.2.3.4 ',
      '1.2.3.4/255.0.0.0',
    ].map((entry): [string, () => unknown, string] => [
      `ipAllowList of ${JSON.stringify(entry)}`,
      () => ipAllowList(['127.0.0.1', entry]),
      `Expected \`addresses\` to be ${ranges}, got ${JSON.stringify(entry)}.`,
    ]),
    ['ipAllowList of a number', () => ipAllowList([1 as never]), `Expected \`addresses\` to be ${ranges}, got 1.`],
  ];

  test.each(wrong)('%s: says what was expected', (_what, make, message) => {
    expect(make).toThrow(expect.objectContaining({ name: 'TransferCallbackError', code: 'INVALID_ARGUMENT', message }));
    expect(message).not.toMatch(/hunter2|first-secret/);
  });

  // What people do by mistake: the message goes to a log, so it must not carry the secret there.
  const mistakes: [string, () => unknown][] = [
    ['a secret that is a number', () => urlToken(4_111_111_111_111_111 as never)],
    ['a header secret that is a number', () => headerToken('X-Token', 4_111_111_111_111_111 as never)],
    ['a password that is a number', () => basicAuth({ username: 'service', password: 4_111_111_111_111_111 as never })],
    ['nothing', () => basicAuth(undefined as never)],
    ['name and password in one text', () => basicAuth('service:hunter2' as never)],
    ['name and password in one list', () => basicAuth(['service', 'hunter2'] as never)],
    ['name and password in the name', () => basicAuth({ username: 'service:hunter2', password: 'x' })],
  ];
  test.each(mistakes)('%s: does not show it', (_what, make) => {
    expect(make).toThrow(
      expect.objectContaining({
        code: 'INVALID_ARGUMENT',
        message: expect.not.stringMatching(/hunter2|41111/) as string,
      }),
    );
  });
});
