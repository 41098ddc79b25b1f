import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { httpServers, plainServer, type Started } from '../support/http-servers.js';
import { errorBody, post } from '../support/post.js';
import { recordingOptions } from '../support/recording-options.js';

/** A row for `test.each` with a title that is not longer than a line. */
function named(value: string): [string, string] {
  return [JSON.stringify(value.slice(0, 30)), value];
}

describe.each(httpServers)('unusual callbacks on $name', (server) => {
  const { options, handled } = recordingOptions();
  let started: Started;
  beforeAll(async () => {
    started = await server.start(options);
  });
  afterAll(() => started.close());

  /** A valid callback as text, with `raw` for the value of one field of its data. */
  function withRaw(field: string, raw: string): string {
    return JSON.stringify(transferSucceeded({ reference: '' })).replace(
      new RegExp(`"${field}":("[^"]*"|[^,}]+)`),
      () => `"${field}":${raw}`,
    );
  }

  test.each([
    ['1E+2', 100],
    ['1.5e3', 1_500],
    ['-0', 0],
    ['1e-400', 0],
    ['0.1000', 0.1],
    ['9007199254740991', Number.MAX_SAFE_INTEGER],
    [`1.${'0'.repeat(40)}1`, 1],
  ])('the amount %s is accepted as a number', async (raw, amount) => {
    const response = await post(started.url, withRaw('amount', raw));
    expect(response.status).toBe(200);
    expect((handled.at(-1)?.data.amount ?? NaN) + 0).toBe(amount);
  });

  test.each(['9007199254740992', '9007199254740993', '-9007199254740993', '1e400'])(
    'the amount %s, which JSON does not carry exactly, is refused',
    async (raw) => {
      const before = handled.length;
      expect((await post(started.url, withRaw('amount', raw))).status).toBe(400);
      expect(handled).toHaveLength(before);
    },
  );

  test.each(
    [
      '"\\ud800"',
      '"\\udfff x"',
      '"\\ude00\\ud83d"',
      '"\\ud83d\\ude00"',
      '"😀"',
      '"\\u0000\\u0001\\u001f\\u007f"',
      '"\\b\\f\\n\\r\\t\\/\\\\\\""',
      '"\u202egnp.exe\u202c"',
      '"\u2066a\u2069\u200f"',
      '"\u200b\u200d\ufeff"',
      '"\u2028\u2029"',
      '"\uffff\ufdd0"',
      '"Z̸̢̛͙a̵̡lgo"',
      '"__proto__"',
      '"${7*7}{{7*7}}<script>"',
      '"\' OR 1=1 --"',
      `"${'x'.repeat(100_000)}"`,
    ].map(named),
  )('the text %s reaches the handler unchanged, in every field but the id', async (_shown, raw) => {
    for (const field of [
      'externalId',
      'reference',
      'currency',
      'provider',
      'externalReference',
      'vouchercode',
      'walletNumber',
    ]) {
      const body = withRaw(field, raw);
      const response = await post(started.url, body);
      expect([field, response.status]).toEqual([field, 200]);
      expect(handled.at(-1)?.data).toEqual((JSON.parse(body) as { data: unknown }).data);
      expect(handled.at(-1)?.data).toHaveProperty(field, JSON.parse(raw));
    }
  });

  test.each(
    [
      '"\\ud800"',
      '"id\\udfff"',
      '"\\ude00\\ud83d"',
      '"\\u0000"',
      '"id\\n"',
      '"\\u001b[2J"',
      '"\u202egnp"',
      '"id\u200f"',
      '"\ufeffid"',
      `"${'x'.repeat(256)}"`,
      `"${'😀'.repeat(256)}"`,
      `"${'x'.repeat(100_000)}"`,
      '""',
    ].map(named),
  )('the response to the id %s is 400', async (_shown, raw) => {
    const before = handled.length;
    const response = await post(started.url, withRaw('id', raw));
    expect([response.status, response.body]).toEqual([
      400,
      errorBody(400, 'This is not a documented callback: see data.id.'),
    ]);
    expect(handled).toHaveLength(before);
  });

  test.each(['x'.repeat(255), '😀'.repeat(255), '😀 付款', '../..', '%2e%2e', '{tag}:*'].map(named))(
    'the id %s is accepted, and a duplicate when it comes again',
    async (_shown, suffix) => {
      // 255 characters at most, and other ids in every run.
      const id = Array.from(`${crypto.randomUUID()}${suffix}`).slice(0, 255).join('');
      const callback = transferSucceeded({ id });
      expect((await post(started.url, callback)).body).toBe('{"outcome":"processed"}');
      expect((await post(started.url, callback)).body).toBe('{"outcome":"duplicate"}');
    },
  );

  test('the last of two equal fields counts', async () => {
    const body = JSON.stringify(transferSucceeded()).replace('"amount":15000', '"amount":"all","amount":1,"amount":2');
    expect((await post(started.url, body)).status).toBe(200);
    expect(handled.at(-1)?.data.amount).toBe(2);
  });

  test.each([
    ['arrays', '[', ']', 45_000],
    ['objects', '{"a":', '}', 15_000],
  ])(
    'an unknown field of %s in one another, as deep as the limit allows, is accepted',
    async (_what, open, close, depth) => {
      const nested = open.repeat(depth) + '0' + close.repeat(depth);
      const callback = JSON.stringify(transferSucceeded());
      for (const body of [
        callback.replace('{"event"', () => `{"extra":${nested},"event"`),
        callback.replace('"data":{', () => `"data":{"extra":${nested},`),
      ]) {
        expect((await post(started.url, body)).status).toBe(200);
      }
    },
  );
});

test('deep nesting where a bank account is expected is accepted too', async () => {
  const { options, handled } = recordingOptions();
  const { url, close } = await plainServer.start(options);
  onTestFinished(close);
  const body = JSON.stringify(
    transferSucceeded({ paymentMethod: 'bank', walletNumber: null, bankAccount: { nested: '|' } }),
  ).replace('"|"', '['.repeat(45_000) + ']'.repeat(45_000));
  expect((await post(url, body)).status).toBe(200);
  expect(handled).toHaveLength(1);
});
