import { describe, expect, test } from 'vitest';
import { headerToken, urlToken } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { httpServers } from '../../support/http-servers.js';
import { post } from '../../support/post.js';
import { startGuarded } from '../support.js';

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
