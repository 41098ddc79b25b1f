import { describe, expect, test } from 'vitest';
import type { Transaction } from 'transfer-callbacks/client';
import { catchError, credentials, startService, transaction } from './support.js';

describe('getTransaction', () => {
  test('reads a transaction with the documented headers, under data or at the top', async () => {
    const { client, received } = await startService([
      [200, { error: false, data: transaction }],
      [200, transaction],
    ]);
    expect(await client.getTransaction('tr-1')).toEqual(transaction);
    expect(await client.getTransaction('payout 1/é'.replace('/', '-'))).toEqual(transaction);
    expect(received.map(({ method, url, headers }) => [method, url, headers['x-api-secret']])).toEqual([
      ['GET', '/transactions/tr-1', credentials.apiSecret],
      ['GET', '/transactions/payout%201-%C3%A9', credentials.apiSecret],
    ]);
  });

  test('an id that a URL could read in another way never gets into the path', async () => {
    const cases: string[] = [
      '',
      '.',
      '..',
      '../admin',
      'a/b',
      'a\\b',
      'a?b',
      'a#b',
      '%2e%2e',
      'a%2Fb',
      'a\nb',
      'a\u202Eb',
      '\uD800',
      'x'.repeat(256),
    ];
    for (const id of cases) {
      const { client, received } = await startService([[200, transaction]]);
      expect(await catchError(client.getTransaction(id)), id).toMatchObject({ code: 'INVALID_ID' });
      expect(received, id).toEqual([]);
    }
  });

  test('an id may have 255 characters, and any dots beside others', async () => {
    const { client, received } = await startService([[200, transaction]]);
    const ids = ['x'.repeat(255), '...', '.tr', '..tr', 'tr..'];
    for (const id of ids) await client.getTransaction(id);
    expect(received.map(({ url }) => url)).toEqual(ids.map((id) => `/transactions/${id}`));
  });

  test.each([5, ['tr-1'], null])('an id that is not a string is refused, such as %j', async (id) => {
    const { client } = await startService([[200, transaction]]);
    expect(await catchError(client.getTransaction(id as never))).toMatchObject({ code: 'INVALID_ID' });
  });

  test('`readTransaction` finds it where else it may be', async () => {
    const { client } = await startService([[200, { result: [transaction] }]], {
      readTransaction: (body) => (body as { result: Transaction[] }).result[0],
    });
    expect(await client.getTransaction('tr-1')).toEqual(transaction);
  });

  test.each<[unknown, string]>([
    [{ data: { id: 'tr-1', status: 'SUCCESS' } }, 'No transaction with id, externalId and status was found'],
    ['not json', 'No transaction with id, externalId and status was found'],
    [null, 'No transaction with id, externalId and status was found'],
  ])('a response such as %j has no transaction in it, and the error tells so', async (body, message) => {
    const { client } = await startService([[200, body === 'not json' ? 'not json' : JSON.stringify(body)]]);
    const error = await catchError(client.getTransaction('tr-1'));
    expect(error).toMatchObject({ code: 'UNREADABLE_RESPONSE', status: 200 });
    expect(error.message).toContain(message);
  });

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
