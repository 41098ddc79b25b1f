import { describe, expect, test } from 'vitest';
import type { Transaction } from 'transfer-callbacks/client';
import { containing } from '../support/containing.js';
import { catchError, credentials, startService, transaction } from './support.js';

describe('getTransaction', () => {
  test('reads a transaction with the documented headers, under data or at the top', async () => {
    const { client, received } = await startService([
      [200, { error: false, data: transaction }],
      [200, transaction],
    ]);
    expect(await client.getTransaction('tr-1')).toEqual(transaction);
    expect(await client.getTransaction('payout 1-é')).toEqual(transaction);
    expect(received.map(({ method, url, headers }) => [method, url, headers['x-api-secret']])).toEqual([
      ['GET', '/transactions/tr-1', credentials.apiSecret],
      ['GET', '/transactions/payout%201-%C3%A9', credentials.apiSecret],
    ]);
  });

  test('an id that is no string, or that a URL could read in another way, never gets into the path', async () => {
    const { client, received } = await startService([[200, transaction]]);
    const odd = [
      '',
      '.',
      '..',
      '../admin',
      'a\\b',
      'a?b',
      'a#b',
      '%2e%2e',
      'a\nb',
      'a\u202Eb',
      '\uD800',
      'x'.repeat(256),
    ];
    for (const id of [...odd, 5, ['tr-1'], null]) {
      expect(await catchError(client.getTransaction(id as never)), String(id)).toMatchObject({ code: 'INVALID_ID' });
    }
    expect(received).toEqual([]);
  });

  test('an id may have 255 characters, and any dots beside others', async () => {
    const { client, received } = await startService([[200, transaction]]);
    const ids = ['x'.repeat(255), '...', '.tr', '..tr', 'tr..'];
    for (const id of ids) await client.getTransaction(id);
    expect(received.map(({ url }) => url)).toEqual(ids.map((id) => `/transactions/${id}`));
  });

  test('`readTransaction` finds it where else it may be', async () => {
    const { client } = await startService([[200, { result: [transaction] }]], {
      readTransaction: (body) => (body as { result: Transaction[] }).result[0],
    });
    expect(await client.getTransaction('tr-1')).toEqual(transaction);
  });

  test.each([{ data: { id: 'tr-1', status: 'SUCCESS' } }, null])(
    'a response such as %j has no transaction in it, and the error tells so',
    async (body) => {
      const { client } = await startService([[200, JSON.stringify(body)]]);
      expect(await catchError(client.getTransaction('tr-1'))).toMatchObject({
        code: 'UNREADABLE_RESPONSE',
        status: 200,
        message: containing('No transaction with id, externalId and status was found'),
      });
    },
  );

  test('a `readTransaction` that throws makes the response unreadable', async () => {
    const cause = new Error('no such field');
    const { client } = await startService([[200, {}]], {
      readTransaction: () => {
        throw cause;
      },
    });
    expect(await catchError(client.getTransaction('tr-1'))).toMatchObject({ code: 'UNREADABLE_RESPONSE', cause });
  });
});
