import { describe, expect, test } from 'vitest';
import { transferCallbackReceiver, urlToken, type TransferCallback, type Verifier } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { expressServers, httpServers, mountPath, notFoundBody } from '../support/servers/http-servers.js';
import { post } from '../support/helpers/post.js';
import { head, overSocket, parseStatus } from '../support/helpers/sockets.js';
import { recordingOptions } from '../support/helpers/recording-options.js';
import { start } from './support.js';

/** Sends a request over a socket, because a client's URL parser would tidy the path; returns the response as text. */
function postTo(url: string, target: string, callback: TransferCallback, method = 'POST'): Promise<string> {
  const bytes = JSON.stringify(callback);
  const headers = { 'Content-Type': 'application/json', 'Content-Length': bytes.length };
  return overSocket(url, (socket) => {
    socket.write(head(url, headers, method).replace(mountPath, target) + bytes);
  });
}

describe.each(httpServers)('on $name', (server) => {
  test('a callback runs the handler of its event, once, with what was sent and where it came from', async () => {
    const { options } = recordingOptions();
    const calls: unknown[] = [];
    const { url } = await start(server, {
      ...options,
      onSuccess: (callback, { source, tx }) => calls.push(['onSuccess', callback, source, tx]),
      onFailed: (callback, { source, tx }) => calls.push(['onFailed', callback, source, tx]),
    });
    const callbacks = [
      transferSucceeded(),
      transferFailed({ paymentMethod: 'bank', walletNumber: null, bankAccount: { iban: 'CM21' } }),
    ];
    for (const callback of callbacks) {
      expect((await post(url, callback)).body).toBe('{"outcome":"processed"}');
      expect((await post(url, callback)).body).toBe('{"outcome":"duplicate"}');
    }
    expect(calls).toEqual([
      ['onSuccess', callbacks[0], 'http', undefined],
      ['onFailed', callbacks[1], 'http', undefined],
    ]);
  });

  test('two servers on one receiver share one record of what was handled', async () => {
    const { options, handled } = recordingOptions();
    const receiver = transferCallbackReceiver(options);
    const first = await start(server, { receiver });
    const second = await start(server, { receiver });
    const callback = transferSucceeded();
    expect((await post(first.url, callback)).body).toBe('{"outcome":"processed"}');
    expect((await post(second.url, callback)).body).toBe('{"outcome":"duplicate"}');
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'duplicate', source: 'direct' });
    expect(handled).toEqual([callback]);
  });
});

describe.each(expressServers)('on $name', (server) => {
  const readers: [string, Verifier][] = [
    ['urlToken', urlToken('a-secret-long-enough')],
    ['a verifier that declares that it reads the path', Object.assign(() => true, { readsPath: true })],
  ];
  const others: [string, Verifier | undefined][] = [
    ['none', undefined],
    ['a function', () => true],
    ['a verifier that declares that it does not read the path', Object.assign(() => true, { readsPath: false })],
  ];
  const elsewhere = [
    `${mountPath}/a/b`,
    `${mountPath}/a/b/`,
    `${mountPath}/a//`,
    `${mountPath}/a/b?q=1`,
    `${mountPath}x`,
    '/callbacks',
    '/',
  ];
  const oneBelow = ['/token', '/token/', '/token?q=/a/b', '/%2F', '/a%20b', '/..%2f', '/t?'].map(
    (below) => mountPath + below,
  );
  const methods = ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'];

  async function expectLeftToApp(verify: Verifier | undefined, paths: string[], methods: string[]): Promise<void> {
    const { options, handled, logged } = recordingOptions();
    const { url } = await start(server, { ...options, ...(verify && { verify }) });
    for (const path of paths) {
      for (const method of methods) {
        const text = await postTo(url, path, transferSucceeded(), method);
        expect([path, method, parseStatus(text)]).toEqual([path, method, 404]);
        if (method !== 'HEAD') expect(text).toContain(notFoundBody);
      }
    }
    expect(handled).toEqual([]);
    expect(logged).toEqual([]);
  }

  test.each(others)('with %s as verifier, other paths are left to the app', async (_name, verify) => {
    await expectLeftToApp(verify, [...elsewhere, ...oneBelow], ['POST', ...methods]);
  });

  test.each(readers)('with %s as verifier, POST one segment below is a delivery', async (_name, verify) => {
    const { options } = recordingOptions();
    const { url } = await start(server, { ...options, verify });
    for (const path of oneBelow) {
      expect([path, parseStatus(await postTo(url, path, transferSucceeded()))]).not.toEqual([path, 404]);
    }
    // Alone or as one of several.
    const listed = await start(server, { ...options, verify: [() => true, verify] });
    expect(parseStatus(await postTo(listed.url, `${mountPath}/token`, transferSucceeded()))).not.toBe(404);
  });

  test.each(readers)(
    'with %s as verifier, other paths are left to the app, and other methods one segment below',
    async (_name, verify) => {
      await expectLeftToApp(verify, elsewhere, ['POST', ...methods]);
      await expectLeftToApp(verify, oneBelow, methods);
    },
  );

  test('a callback at the mount path is a delivery, however the path is written', async () => {
    const { options, handled } = recordingOptions();
    const { url } = await start(server, options);
    const targets = [mountPath, `${mountPath}/`, `${mountPath}?q=1`, `${mountPath}/?q=1`, url];
    for (const target of targets) {
      expect([target, parseStatus(await postTo(url, target, transferSucceeded()))]).toEqual([target, 200]);
    }
    expect(handled).toHaveLength(targets.length);
  });
});
