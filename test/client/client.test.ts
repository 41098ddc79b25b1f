import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { transferCallbackSchema } from 'transfer-callbacks';
import { transferService } from 'transfer-callbacks/client';
import { catchError, credentials, refusal, request, startService, transaction } from './support.js';
import { containing } from '../support/helpers/containing.js';
import type { TransferServiceOptions } from '../../src/client/service/transfer.js';

describe('transferService', () => {
  test('keeps the path of the base URL, however many slashes it ends with', async () => {
    const { baseUrl, received } = await startService([[200, {}]]);
    for (const base of [`${baseUrl}/api/v1`, `${baseUrl}/api/v1/`, `${baseUrl}/api/v1//`]) {
      await transferService({ ...credentials, baseUrl: base }).createTransfer(request);
    }
    expect(received.map(({ url }) => url)).toEqual(Array(3).fill('/api/v1/transactions/transfer'));
  });

  test('null in place of the options is as none', async () => {
    const { client } = await startService([[200, { data: transaction }]]);
    await client.createTransfer(request, null as never);
    await client.getTransaction('tr-1', null as never);
  });

  test('the secret does not come back from a server that does not speak HTTP, and repeats what it got', async () => {
    const server = createServer((socket) => {
      socket.on('data', (bytes) => socket.end(Buffer.concat([Buffer.from('nonsense '), bytes])));
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const client = transferService({ ...credentials, baseUrl: `http://127.0.0.1:${port}` });
    expect(await catchError(client.createTransfer(request))).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      cause: expect.any(Error) as unknown,
    });
  });

  test('a secret that the service repeats is redacted', async () => {
    const { client } = await startService([refusal(400, `Wrong secret ${credentials.apiSecret} for key-1`)]);
    const error = await catchError(client.createTransfer(request));
    expect(error.body?.message).toBe('Wrong secret [redacted] for [redacted]');
  });

  test('shows nothing of the secret when it is looked at', () => {
    const client = transferService({ ...credentials, baseUrl: 'https://service.example' });
    expect(inspect(client, { depth: null, showHidden: true })).not.toContain(credentials.apiSecret);
    expect(JSON.stringify(client)).not.toContain(credentials.apiSecret);
  });

  const aUrl = 'Expected `baseUrl` to be an http or https URL without credentials, query or fragment, got a string of';
  const visible = 'to be a string of visible ASCII characters, got';
  test.each<[object | null, string]>([
    [{ baseUrl: 'service.example' }, `${aUrl} 15 characters.`],
    [{ baseUrl: 'ftp://service.example' }, `${aUrl} 21 characters.`],
    [{ baseUrl: 'https://a:b@service.example' }, `${aUrl} 27 characters.`],
    [{ baseUrl: 'https://service.example/?a' }, `${aUrl} 26 characters.`],
    [{ apiKey: '' }, `Expected \`apiKey\` ${visible} an empty string. Is its environment variable set?`],
    [{ apiSecret: 'with a\nline' }, `Expected \`apiSecret\` ${visible} a string of 11 characters.`],
    [{ apiSecret: undefined }, `Expected \`apiSecret\` ${visible} undefined. Is its`],
    [{ timeoutMs: 0 }, 'Expected `timeoutMs` to be a whole number from 1 to 2147483647, got 0.'],
    [{ fetch: 5 }, 'Expected `fetch` to be a function, got 5.'],
    [{ readTransaction: 'data' }, 'Expected `readTransaction` to be a function, got "data".'],
    [null, 'Expected `options` to be an object, got null.'],
  ])('refuses the options %j', (changes, message) => {
    const options = changes && { baseUrl: 'https://service.example', ...credentials, ...changes };
    expect(() => transferService(options as TransferServiceOptions)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: containing(message) }),
    );
  });

  test('with a payload and no key it is not asked, and with one key it needs all three', () => {
    const payload = transferCallbackSchema;
    const service = transferService({ payload });
    expect([service.ask, service.makeConfirm]).toEqual([undefined, undefined]);
    const refused: [object, string][] = [
      [{}, 'Expected `baseUrl` to be given with `apiKey` and `apiSecret`, unless the service is not asked: then leave'],
      [{ payload: undefined }, 'Expected `payload` to be a schema'],
      ...['baseUrl', 'apiKey', 'apiSecret'].map((key): [object, string] => [
        { payload, [key]: undefined },
        'Expected `baseUrl` to be an http or https URL without credentials, query or fragment, got undefined.',
      ]),
      [{ payload, baseUrl: 'https://service.example' }, 'Expected `apiKey` to be a string of visible ASCII characters'],
    ];
    for (const [options, message] of refused) {
      expect(() => transferService(options as never), message).toThrow(
        expect.objectContaining({ code: 'INVALID_ARGUMENT', message: containing(message) }),
      );
    }
  });
});
