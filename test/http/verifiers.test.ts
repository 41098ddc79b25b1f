import { describe, expect, test } from 'vitest';
import { headerToken, urlToken } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { httpServers } from '../support/http-servers.js';
import { post } from '../support/post.js';
import { recordingOptions } from '../support/recording-options.js';
import { start, startGuarded } from './support.js';

const secret = 'first-secret-0123456789';
const older = 'older-secret-0123456789';

describe.each(httpServers)('on $name', (server) => {
  describe('verifiers of one kind and another', () => {
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

    test('without a verifier no sender is verified: an undocumented body is a warning, and no error', async () => {
      const { options, logged } = recordingOptions();
      const { url } = await start(server, options);
      expect((await post(url, {})).status).toBe(400);
      expect(logged).toMatchObject([{ level: 'warn', details: { outcome: 'invalid', verified: false } }]);
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
    ])('a verifier that returns %s accepts', async (_what, verify) => {
      const { url, admits } = await startGuarded(server, verify);
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
    ])('a verifier that returns %s refuses, as a promise too', async (_what, verdict) => {
      for (const verify of [() => verdict, () => Promise.resolve(verdict)]) {
        const { url, refuses } = await startGuarded(server, verify);
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
    ])('a verifier that %s refuses, and the log has the reason', async (_what, verify) => {
      const { url, refuses, logged } = await startGuarded(server, verify);
      await refuses(url);
      expect(logged).toMatchObject([
        {
          level: 'warn',
          message: 'A transfer callback came from a sender that was not verified.',
          details: { outcome: 'unauthorized', err: { message: 'no keys today' } },
        },
      ]);
    });

    test('a verifier gets the request and the callback, or undefined for an invalid one', async () => {
      const asked: unknown[] = [];
      const { url } = await startGuarded(server, (request: { url: string; method: string }, callback: unknown) => {
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
});
