import { describe, expect, test, vi } from 'vitest';
import type { TransferCallback } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { nodeServers, type Middleware } from '../support/servers/http-servers.js';
import { post } from '../support/helpers/post.js';
import { recordingOptions } from '../support/helpers/logger.js';
import { later } from '../core/support.js';
import { doing, start, startRecording } from './support.js';

const cannotRespond = { level: 'error', message: 'A callback could not be responded to.' };

describe.each(nodeServers)('on $name', (server) => {
  const early: [string, (response: Parameters<Middleware>[1]) => void][] = [
    ['with half a response', (response) => response.writeHead(200).write('all is')],
    ['by cutting the connection', (response) => void response.destroy()],
  ];
  test.each(early)(
    'a response that other middleware has ended %s breaks nothing, and the handler has run',
    async (_how, endEarly) => {
      const { options, handled, logged } = recordingOptions();
      const running = later();
      const begun = later();
      const onSuccess = async (callback: TransferCallback): Promise<void> => {
        begun.resolve();
        await running.promise;
        options.onSuccess(callback);
      };
      const before = doing((request, response) => {
        if (request.headers['x-slow'] === undefined) return;
        void begun.promise.then(() => {
          endEarly(response);
          running.resolve();
        });
      });
      const { url, passedOn } = await start(server, { ...options, onSuccess }, { before: [before] });
      const callback = transferSucceeded();
      const sent = post(url, callback, { headers: { 'X-Slow': 'yes' } });
      await expect(sent).rejects.toMatchObject({ code: 'ECONNRESET' });
      await vi.waitFor(() => {
        expect(handled).toEqual([callback]);
      });
      expect((await post(url, callback)).body).toBe('{"outcome":"duplicate"}');
      expect(passedOn).toEqual([]);
      expect(logged.filter((line) => line.message !== cannotRespond.message)).toEqual([]);
    },
  );

  test('a response that was sent before the package saw the request is logged once', async () => {
    const before = doing((_request, response) => response.writeHead(418).end('teapot'));
    const { url, passedOn, logged } = await startRecording(server, {}, { before: [before] });
    const response = await post(url, transferSucceeded());
    expect([response.status, response.body]).toEqual([418, 'teapot']);
    await vi.waitFor(() => {
      const details = { delivery: expect.any(String) as string, err: { code: 'ERR_HTTP_HEADERS_SENT' } };
      expect(logged).toMatchObject([{ ...cannotRespond, details }]);
    });
    expect(passedOn).toEqual([]);
  });

  test.each(['writeHead', 'end'] as const)(
    'a response whose %s throws is cut off, never acknowledged',
    async (method) => {
      const before = doing((request, response) => {
        if (request.headers['x-patched'] === undefined) return;
        response[method] = () => {
          throw Object.assign(new Error('patched badly'), { status: 200 });
        };
      });
      const { url, passedOn, handled, logged } = await startRecording(server, {}, { before: [before] });
      const callback = transferSucceeded();
      await expect(post(url, callback, { headers: { 'X-Patched': 'yes' } })).rejects.toMatchObject({
        code: 'ECONNRESET',
      });
      expect(logged).toMatchObject([{ ...cannotRespond, details: { err: { message: 'patched badly' } } }]);
      expect(passedOn).toEqual([]);
      expect((await post(url, callback)).body).toBe('{"outcome":"duplicate"}');
      expect(handled).toEqual([callback]);
    },
  );
});
