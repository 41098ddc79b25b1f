import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { transferFailed } from 'transfer-callbacks/testing';
import { nodeServers, type Started } from '../support/http-servers.js';
import { errorBody, post } from '../support/post.js';
import { recordingOptions } from '../support/recording-options.js';

describe.each(nodeServers)('on $name', (server) => {
  const { options, handled } = recordingOptions();
  let unread: Started;
  let bytes: Started;
  beforeAll(async () => {
    unread = await server.start(options);
    bytes = await server.start(options, { before: [server.parsers.raw({ type: '*/*' })] });
  });
  afterAll(() => Promise.all([unread.close(), bytes.close()]));

  test.each<[string, string | Buffer, string]>([
    ['a text that ends early', '{"event":"transfer.success","data":', 'The body is not JSON.'],
    ['two values', '{}{}', 'The body is not JSON.'],
    ['100 000 opening brackets', '['.repeat(100_000), 'The body is not JSON.'],
    ['UTF-16', Buffer.from('{"a":1}', 'utf16le'), 'The body is not JSON.'],
    ['bytes that are no UTF-8', Buffer.from([0x22, 0xff, 0x22]), 'The body is not UTF-8.'],
  ])('%s is refused, read by the package or before it, and the server goes on', async (_what, body, message) => {
    for (const { url } of [unread, bytes]) {
      expect(await post(url, body)).toMatchObject({ status: 400, body: errorBody(400, message) });
    }
    expect(handled).toEqual([]);
    expect((await post(unread.url, transferFailed())).status).toBe(200);
    handled.length = 0;
  });
});
