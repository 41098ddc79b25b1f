import { describe, expect, test } from 'vitest';
import { headerToken, urlToken, type Verifier } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { expressServers, roads, type HttpServer } from '../support/servers/http-servers.js';
import { post, type Sent } from '../support/helpers/post.js';
import { startGuarded, unauthorized, verifiers } from './support.js';
import { readText } from '../docs/pages.js';

const secret = 'first-secret-0123456789';
const older = 'older-secret-0123456789';

test('every verifier of the package is tried here', () => {
  const exported = readText('src/http/verifiers/index.ts').matchAll(/export \{([^}]*)\} from/g);
  const names = [...exported].flatMap(([, list = '']) => list.split(',').map((name) => name.trim()));
  expect(names.filter((name) => /^[a-z]\w+$/.test(name)).sort()).toEqual(Object.keys(verifiers).sort());
});

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

async function expectOneResponse(server: HttpServer, verify: Verifier): Promise<void> {
  const { url, refuses, logged } = await startGuarded(server, verify);
  for (const [what, body, sent] of requests) {
    const response = await post(url, body, sent);
    expect([what, response.status, response.body]).toEqual([what, 401, sent.method === 'HEAD' ? '' : unauthorized]);
    expect(response.headers).not.toHaveProperty('allow');
  }
  await refuses(url);
  for (const { details } of logged) expect(details).toMatchObject({ outcome: 'unauthorized', source: 'http' });
}

test.each(expressServers)('on $name a sender that is refused gets the same response, whatever it sends', (server) =>
  expectOneResponse(server, urlToken(secret)),
);

describe.each(roads)('on $name', (server) => {
  test.each(Object.entries(verifiers))(
    'a sender that %s refuses gets the same response, whatever it sends',
    (_name, make) => expectOneResponse(server, make()),
  );

  test('the log of a refused sender contains no secret', async () => {
    const { url, refuses, logged } = await startGuarded(server, [headerToken('X-Token', secret), urlToken(older)]);
    await refuses(url, { headers: { 'X-Token': secret } });
    await refuses(`${url}/${older}`);
    const text = JSON.stringify(logged);
    expect(logged).toHaveLength(2);
    expect(text).not.toContain(secret);
    expect(text).not.toContain(older);
  });

  test('a verifier that returns anything but true, or resolves with it, refuses', async () => {
    for (const verdict of [undefined, 1, 'true', { ok: false }, Promise.resolve({ ok: true })]) {
      const { url, refuses } = await startGuarded(server, () => verdict);
      await refuses(url);
    }
  });

  test('all verifiers of a list must accept, and are called in order until one refuses', async () => {
    const asked: string[] = [];
    const says = (name: string, verdict: boolean) => () => {
      asked.push(name);
      return verdict;
    };
    const both = await startGuarded(server, [urlToken(secret), headerToken('X-Token', older), says('last', true)]);
    await both.admits(`${both.url}/${secret}`, { headers: { 'X-Token': older } });
    await both.refuses(`${both.url}/${secret}`);
    await both.refuses(both.url, { headers: { 'X-Token': older } });
    expect(asked).toEqual(['last']);

    const stopped = await startGuarded(server, [says('a', true), says('b', false), says('c', true)]);
    await stopped.refuses(stopped.url);
    expect(asked).toEqual(['last', 'a', 'b']);
  });
});
