import { isUtf8 } from 'node:buffer';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { nodeServers, type Started } from '../support/http-servers.js';
import { bytesOf, malformedJson, type Malformed } from '../support/malformed-json.js';
import { errorBody, post } from '../support/post.js';
import { witness } from '../support/witness.js';

// Thousands of requests: 20 s on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

const noJson = errorBody(400, 'The body is not JSON.');
const noUtf8 = errorBody(400, 'The body is not UTF-8.');

/** A callback that would be valid but for the entry: as an unknown field, and inside `data`. */
function embedded(entry: Malformed): Buffer[] {
  const callback = JSON.stringify(transferSucceeded());
  return [
    callback.replace('{"event"', '{"extra":|,"event"'),
    callback.replace('"data":{', '"data":{"extra":|,'),
    callback.replace('"amount":15000', '"amount":|'),
  ].map((text) => {
    const [before = '', after = ''] = text.split('|');
    return Buffer.concat([Buffer.from(before), bytesOf(entry), Buffer.from(after)]);
  });
}

function parses(body: Buffer): boolean {
  try {
    JSON.parse(body.toString());
    return isUtf8(body);
  } catch {
    return false;
  }
}

test('the corpus has over 400 different entries, and none is JSON, alone or embedded', () => {
  expect(malformedJson.length).toBeGreaterThan(400);
  const alone = malformedJson.map((entry) => bytesOf(entry).toString('latin1'));
  expect(alone.filter((entry, index) => alone.indexOf(entry) !== index)).toEqual([]);
  const valid = malformedJson.filter((entry) => [bytesOf(entry), ...embedded(entry)].some(parses));
  expect(valid.map(({ what }) => what)).toEqual([]);
});

describe.each(nodeServers)('malformed JSON on $name', (server) => {
  const { options, handled } = witness();
  let unread: Started;
  let bytes: Started;
  let text: Started;
  beforeAll(async () => {
    unread = await server.start(options);
    bytes = await server.start(options, { before: [server.parsers.raw({ type: '*/*', limit: '1mb' })] });
    text = await server.start(options, { before: [server.parsers.text({ type: '*/*', limit: '1mb' })] });
  });
  afterAll(() => Promise.all([unread.close(), bytes.close(), text.close()]));
  afterEach(() => {
    expect(handled).toEqual([]);
  });

  test('malformed JSON is refused, whatever is wrong with it', async () => {
    const others: unknown[] = [];
    const refuses = async ({ what }: Malformed, url: string, body: Buffer, error: string): Promise<void> => {
      const response = await post(url, body);
      if (response.status !== 400 || response.body !== error) others.push([what, body.toString(), response]);
    };
    for (const entry of malformedJson) {
      const alone = bytesOf(entry);
      const deliveries = [alone, ...embedded(entry)].map((body) => [unread.url, body] as const);
      for (const [url, body] of [...deliveries, [bytes.url, alone] as const]) {
        await refuses(entry, url, body, isUtf8(body) ? noJson : noUtf8);
      }
      // express.text() has put U+FFFD where bytes were no UTF-8, and taken a mark away: both are beyond our sight.
      if ('text' in entry && !entry.text.startsWith('\ufeff')) await refuses(entry, text.url, alone, noJson);
    }
    expect(others).toEqual([]);
  });

  test('the server goes on after malformed JSON', async () => {
    const served = witness();
    const { url, close } = await server.start(served.options);
    onTestFinished(close);
    await post(url, '{');
    expect((await post(url, transferFailed())).status).toBe(200);
    expect(unread.passedOn).toEqual([]);
  });
});
