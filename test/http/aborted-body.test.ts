import { once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { readBody } from '../../src/http/body.js';
import { transferFailed } from 'transfer-callbacks/testing';
import { httpServers } from '../support/http-servers.js';
import { post } from '../support/post.js';
import { chunk, head, overSocket } from '../support/sockets.js';
import { witness } from '../support/witness.js';
import { gate, json, start } from './support.js';

describe('readBody', () => {
  test.each([
    ['while the body comes', () => Promise.resolve()],
    ['before it is read', (closed: Promise<unknown>) => closed],
  ])('readBody resolves with undefined if the client has disconnected %s', async (_when, moment) => {
    const read = gate();
    let body: unknown = 'none yet';
    const server = createServer((request) => {
      const closed = new Promise((resolve) => request.once('close', resolve).once('error', resolve));
      client.destroy();
      void moment(closed)
        .then(() => readBody(request, 1_000))
        .then((found) => {
          body = found;
          read.open();
        });
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const client = httpRequest({ port: (server.address() as AddressInfo).port, method: 'POST', headers: json });
    client.on('error', () => undefined).write('{');
    await read.opened;
    expect(body).toBeUndefined();
  });

  test('an error of a request that another host has made does not end the process', async () => {
    // Node's own requests keep an error to themselves while nobody listens; those of test tools and shims do not.
    const request = new Readable({ read: () => undefined });
    const body = readBody(Object.assign(request, { headers: { 'content-type': 'application/json' } }) as never, 1_000);
    request.destroy(new Error('gone'));
    expect(await body).toBeUndefined();
  });
});

describe.each(httpServers)('on $name', (server) => {
  describe('a body that ends before its end', () => {
    const whole = JSON.stringify(transferFailed());
    const framings: [string, (url: string) => Buffer][] = [
      [
        'with a Content-Length',
        (url) => Buffer.from(head(url, { ...json, 'Content-Length': whole.length }) + whole.slice(0, -1)),
      ],
      [
        'in chunks, all but the last one',
        (url) => Buffer.concat([Buffer.from(head(url, { ...json, 'Transfer-Encoding': 'chunked' })), chunk(whole)]),
      ],
    ];
    const moments: [string, (closed: Promise<unknown>) => Promise<unknown>][] = [
      ['while it is read', () => Promise.resolve()],
      ['before the package sees it', (closed) => closed],
    ];

    describe.each(framings)('%s', (_how, beginning) => {
      test.each(moments)('a body that breaks off %s runs nothing, and the server goes on', async (_when, moment) => {
        const { options, handled, logged } = witness();
        let arrived = 0;
        let closed: Promise<unknown> | undefined;
        const { url, passedOn } = await start(server, options, {
          before: [
            async (request, _response, next) => {
              if (request.headers['x-broken'] === undefined) {
                next();
                return;
              }
              closed = new Promise((resolve) => request.once('close', resolve).once('error', resolve));
              arrived += 1;
              await moment(closed);
              next();
            },
          ],
        });
        const answer = await overSocket(url, async (socket) => {
          socket.write(beginning(url).toString().replace('Connection: close', 'X-Broken: yes'));
          await vi.waitFor(() => {
            expect(arrived).toBe(1);
          });
          socket.destroy();
        });
        await closed;
        expect(answer).toBe('');
        expect((await post(url, whole)).body).toBe('{"outcome":"processed"}');
        expect(handled).toHaveLength(1);
        expect(logged).toEqual([]);
        expect(passedOn).toEqual([]);
      });
    });
  });
});
