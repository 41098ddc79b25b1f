import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { transferToken, urlToken } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { httpServers, roads } from '../../support/servers/http-servers.js';
import { startGuarded } from '../support.js';

const secret = 'first-secret-0123456789';
const older = 'older-secret-0123456789';

describe.each(httpServers)('on $name', (server) => {
  test('urlToken accepts its secret as the last segment, and nothing else', async () => {
    const { url, admits, refuses } = await startGuarded(server, urlToken(secret));
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
});

describe.each(roads)('on $name', (server) => {
  test('urlToken accepts each of several secrets, and ignores one that is not set', async () => {
    const { url, admits, refuses } = await startGuarded(server, urlToken([secret, older, undefined]));
    await admits(`${url}/${secret}`);
    await admits(`${url}/${older}`);
    await refuses(`${url}/${secret}${older}`);
    await refuses(`${url}/undefined`);
    await refuses(`${url}/`);
  });

  test('urlToken accepts every character that a URL carries unchanged', async () => {
    const odd = 'aZ09-._~aZ09-._~';
    const { url, admits } = await startGuarded(server, urlToken(odd));
    await admits(`${url}/${odd}`);
  });

  const verify = transferToken([secret, older]);

  test('transferToken accepts the transfer that the address was made for', async () => {
    const externalId = 'é 付款 😀 / ../ %2F \u0000';
    const { url, admits, refuses } = await startGuarded(server, verify);
    const [callback, withSlash] = [transferSucceeded({ externalId }), transferSucceeded({ externalId })];
    await admits(verify.urlFor(url, externalId), {}, callback);
    await admits(`${verify.urlFor(url, externalId)}/`, {}, withSlash);
    await refuses(verify.urlFor(url, `${externalId} `), {}, callback);
    await refuses(verify.urlFor(url, 'payout-2'), {}, callback);
    await refuses(url, {}, callback);
  });

  test('a leaked address forges no other transfer, but may forge a failure of this one', async () => {
    const { url, admits, refuses } = await startGuarded(server, verify);
    const leaked = verify.urlFor(url, 'payout-1');
    await refuses(leaked, {}, transferFailed({ externalId: 'payout-2' }));
    await admits(leaked, {}, transferFailed({ externalId: 'payout-1' }));
  });

  test('addresses made with the older secret are accepted while it is on the list', async () => {
    const { url, admits } = await startGuarded(server, verify);
    await admits(transferToken(older).urlFor(url, 'payout-1'), {}, transferSucceeded({ externalId: 'payout-1' }));
    const { url: strict, refuses } = await startGuarded(server, transferToken(secret));
    await refuses(transferToken(older).urlFor(strict, 'payout-1'), {}, transferSucceeded({ externalId: 'payout-1' }));
  });

  test('transferToken refuses a callback without an externalId to check', async () => {
    const { url, refuses, thrown } = await startGuarded(server, verify);
    const address = verify.urlFor(url, 'payout-1');
    const { event, data } = transferSucceeded({ externalId: 'payout-1' });
    await refuses(address, {}, { event, data: { ...data, externalId: undefined } });
    await refuses(address, {}, { event, data: { ...data, amount: 'all' } });
    await refuses(address, {}, 'not JSON');
    expect(thrown()).toEqual([]);
  });
});

describe('transferToken.urlFor', () => {
  const verify = transferToken([secret, older]);
  const token = createHmac('sha256', secret).update('payout-1').digest('base64url');

  test.each([
    ['https://shop.example', `https://shop.example/${token}`],
    ['https://shop.example/callbacks', `https://shop.example/callbacks/${token}`],
    ['https://shop.example/a/?tenant=/7/', `https://shop.example/a/${token}?tenant=/7/`],
    ['http://user:pass@127.0.0.1:3000/a', `http://user:pass@127.0.0.1:3000/a/${token}`],
  ])('urlFor turns %s into %s', (base, expected) => {
    expect(verify.urlFor(base, 'payout-1')).toBe(expected);
  });

  // The last three are URLs to a parser, and cannot carry the token.
  test.each(['', '/callbacks', 'shop.example/callbacks', 'localhost:3000/callbacks', 'data:,x', 'file:///callbacks'])(
    'urlFor refuses the base %j, which is no address of a web server',
    (base) => {
      expect(() => verify.urlFor(base, 'payout-1')).toThrow(/^Expected `base` to be /);
    },
  );

  test.each([
    ['', '""'],
    [undefined, 'undefined'],
  ])('urlFor refuses the externalId %j', (externalId, shown) => {
    expect(() => verify.urlFor('https://shop.example', externalId as never)).toThrow(
      `Expected \`externalId\` to be a string of at least one character, got ${shown}.`,
    );
  });
});
