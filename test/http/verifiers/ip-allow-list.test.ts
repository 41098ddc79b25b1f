import { describe, expect, test } from 'vitest';
import { ipAllowList } from 'transfer-callbacks';
import { expressServers, httpServers } from '../../support/servers/http-servers.js';
import type { Sent } from '../../support/helpers/post.js';
import { startGuarded } from '../support.js';

const forwarded = (...addresses: string[]): Sent => ({ headers: { 'X-Forwarded-For': addresses.join(', ') } });

describe.each(httpServers)('on $name', (server) => {
  test('the peer is accepted by its address, and whatever it claims to forward is ignored', async () => {
    const listed = await startGuarded(server, ipAllowList(['203.0.113.7', '127.0.0.0/8']));
    await listed.admits(listed.url);
    const { url, refuses } = await startGuarded(server, ipAllowList(['203.0.113.7', '127.0.0.2', '::1']));
    await refuses(url);
    await refuses(url, forwarded('203.0.113.7'));
  });
});

describe.each(expressServers)('ipAllowList on $name', (server) => {
  test.each([
    ['1', 1],
    ['a function of the hop', (_address: string, hop: number) => hop < 1],
    ['a list of ranges', ['127.0.0.0/8', '10.0.0.0/8']],
  ])('the address that the last proxy saw counts with trust proxy %s', async (_what, trust) => {
    const { url, admits, refuses } = await startGuarded(server, ipAllowList(['203.0.113.0/24', '2001:db8::/32']), {
      settings: { 'trust proxy': trust },
    });
    const mapped = ['::ffff:203.0.113.7', '::FFFF:203.0.113.7', '::ffff:cb00:7107'];
    for (const address of ['203.0.113.7', '2001:db8::7', ...mapped]) await admits(url, forwarded(address));
    await admits(url, forwarded('198.51.100.1', '203.0.113.7'));
    await refuses(url, forwarded('203.0.113.7', '198.51.100.1'));
    const others = ['198.51.100.1', '2001:db9::7', '::ffff:198.51.100.1'];
    for (const address of [...others, '203.0.113.7:443', '203.0.113', 'unknown'])
      await refuses(url, forwarded(address));
    await refuses(url);
  });

  const everybody: [string, unknown][] = [
    ['true', true],
    ['a function that returns something truthy', () => 'yes'],
    ['both halves of all addresses', ['0.0.0.0/1', '128.0.0.0/1']],
    ['a hundred hops', 100],
  ];
  test.each(everybody)(
    'every sender is refused with trust proxy %s, and the log gives the reason',
    async (_what, trust) => {
      const { url, refuses, logged } = await startGuarded(server, ipAllowList(['0.0.0.0/0', '::/0']), {
        settings: { 'trust proxy': trust },
      });
      await refuses(url);
      await refuses(url, forwarded('127.0.0.1'));
      expect(logged).toHaveLength(2);
      const message =
        'ipAllowList needs `trust proxy` to name your proxies: with the present setting a sender can claim any address. ' +
        "Write `app.set('trust proxy', ['10.0.0.7'])`, with the address of each proxy.";
      expect(logged[0]).toMatchObject({ level: 'warn', details: { err: { code: 'INVALID_ARGUMENT', message } } });
    },
  );
});

test.each([
  ['203.0.113.7', '203.0.113.8', false],
  ['203.0.113.7', '::ffff:203.0.113.7', true],
  ['203.0.113.7', '::203.0.113.7', false],
  ['203.0.113.8/29', '203.0.113.15', true],
  ['203.0.113.8/29', '203.0.113.16', false],
  ['0.0.0.0/0', '255.255.255.255', true],
  ['2001:DB8::1', '2001:db8::1', true],
  ['2001:db8::1', '2001:db8::2', false],
  ['2001:db8::/33', '2001:db8:7fff::1', true],
  ['2001:db8::/33', '2001:db8:8000::1', false],
  ['::ffff:203.0.113.0/120', '203.0.113.9', true],
  ['0.0.0.0/0', '2001:db8::1', false],
  ['0.0.0.0/0', '', false],
  ['0.0.0.0/0', undefined, false],
  ['0.0.0.0/0', 'localhost', false],
  ['0.0.0.0/0', '01.2.3.4', false],
])('ipAllowList with %s accepts %s: %s', (entry, address, expected) => {
  expect(ipAllowList([entry])({ ip: address, headers: {}, socket: {} })).toBe(expected);
});
