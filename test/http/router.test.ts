import { describe, expect, test } from 'vitest';
import { urlToken, type TransferCallback, type Verifier } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { expressServers, mountPath, notFoundBody } from '../support/servers/http-servers.js';
import { head, overSocket, parseStatus } from '../support/helpers/sockets.js';
import { startRecording } from './support.js';

/** Sends a request over a socket, because a client's URL parser would tidy the path; returns the response as text. */
function postTo(url: string, target: string, callback: TransferCallback, method = 'POST'): Promise<string> {
  const bytes = JSON.stringify(callback);
  const headers = { 'Content-Type': 'application/json', 'Content-Length': bytes.length };
  return overSocket(url, (socket) => {
    socket.write(head(url, headers, method).replace(mountPath, target) + bytes);
  });
}

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
    const { url, handled, logged } = await startRecording(server, { ...(verify && { verify }) });
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
    await expectLeftToApp(verify, [...elsewhere, ...oneBelow], ['POST', 'PUT']);
  });

  test.each(readers)('with %s as verifier, POST one segment below is a delivery', async (_name, verify) => {
    const { url } = await startRecording(server, { verify });
    for (const path of oneBelow) {
      expect([path, parseStatus(await postTo(url, path, transferSucceeded()))]).not.toEqual([path, 404]);
    }
    // Alone or as one of several.
    const listed = await startRecording(server, { verify: [() => true, verify] });
    expect(parseStatus(await postTo(listed.url, `${mountPath}/token`, transferSucceeded()))).not.toBe(404);
  });

  test.each(readers)(
    'with %s as verifier, other paths are left to the app, and other methods one segment below',
    async (_name, verify) => {
      await expectLeftToApp(verify, elsewhere, ['POST', 'PUT']);
      await expectLeftToApp(verify, oneBelow, methods);
    },
  );

  test('a callback at the mount path is a delivery, however the path is written', async () => {
    const { url, handled } = await startRecording(server);
    const targets = [mountPath, `${mountPath}/`, `${mountPath}?q=1`, `${mountPath}/?q=1`, url];
    for (const target of targets) {
      expect([target, parseStatus(await postTo(url, target, transferSucceeded()))]).toEqual([target, 200]);
    }
    expect(handled).toHaveLength(targets.length);
  });
});
