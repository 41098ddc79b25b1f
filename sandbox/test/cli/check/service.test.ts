import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { TransferCallback } from 'transfer-callbacks';
import { transferService } from 'transfer-callbacks/client';
import { freePort } from '../../../../test/support/servers/port.js';
import { check, checkIn, isWhole, makeBooks, serveBodies, withRouter } from './support.js';
import { parseJson } from '../../../../src/lib/text.js';

/** An app with a key of its own, which asks the service at `port`. */
async function withKey(port: number, keys: { apiKey: string; apiSecret: string }): Promise<string> {
  const service = transferService({ baseUrl: `http://127.0.0.1:${port}`, ...keys });
  return withRouter({ service, confirm: true, onSuccess: () => undefined, onFailed: () => undefined });
}

const keys = { apiKey: 'the-key-of-the-app', apiSecret: 'the-secret-of-the-app' };

test('a key of the app that the service of the check refuses is named, with the variables to set', async () => {
  const port = await freePort();
  const url = await withKey(port, keys);
  const { code, result } = await check(url, '--port', String(port));
  expect(code).toBe(2);
  expect(result?.missing).toBe(
    `The first callback was refused, so that nothing could be seen. Your app asked the service at http://127.0.0.1:${port}, ` +
      'which refused its key (x-api-key is invalid). Set SANDBOX_API_KEY and SANDBOX_API_SECRET to the key and the ' +
      'secret that your app sends.',
  );
  const env = { SANDBOX_API_KEY: keys.apiKey, SANDBOX_API_SECRET: keys.apiSecret };
  expect(await checkIn({ env }, url, '--port', String(port))).toMatchObject({ code: 0, wrong: [] });
});

test('an address at which nothing listens gave no response', async () => {
  const { code, result } = await check(`http://127.0.0.1:${await freePort()}/callbacks`);
  const sentence = 'The first callback got no response, so that nothing could be seen. Nothing listens there.';
  expect([code, result?.missing]).toEqual([2, expect.stringContaining(sentence)]);
});

test('an app that asks another service is told the address of this one, and not to run `trigger`', async () => {
  const url = await withKey(await freePort(), keys);
  const port = await freePort();
  const { code, result } = await check(url, '--port', String(port));
  expect([code, result?.missing]).toEqual([2, expect.stringContaining(`be http://127.0.0.1:${port}.`)]);
  expect(result?.missing).not.toContain('trigger');
});

test('--prepare gets each transfer, and that of a body and of a forged callback, as it will be sent', async () => {
  const { folder } = await makeBooks();
  const prepared = join(folder, 'prepared');
  const received: unknown[] = [];
  const url = await serveBodies((body) => {
    const callback = parseJson(body) as TransferCallback | undefined;
    received.push(callback);
    const { event, data } = (callback ?? {}) as Partial<TransferCallback>;
    return callback && event && data && isWhole(callback) ? 200 : 400;
  });
  const prepare = `echo "$ID $STATUS $TRANSFER_ID $AMOUNT $CURRENCY" >> ${prepared}`;
  const { code, trial } = await check(url, '--prepare', prepare, '--forged', url);
  // What was believed may not have been booked.
  expect([code, trial('forged')?.because[0]]).toEqual([
    2,
    expect.stringContaining('right only if nothing was booked.'),
  ]);
  const lines = (await readFile(prepared, 'utf8')).trim().split('\n');
  const whole = received.filter((each) => isAsPrepared(each, lines));
  expect(lines.every((line) => line.startsWith('check-'))).toBe(true);
  expect(new Set(whole.map(({ data }) => data.externalId)).size).toBeGreaterThan(20);
  for (const line of lines) expect(line).toMatch(/^\S+ (?:SUCCESS|FAILED) [\w-]{36} 15000 XAF$/);
});

/** Whether the facts that --prepare got are those of a callback. */
function isAsPrepared(each: unknown, lines: readonly string[]): each is TransferCallback {
  const { data } = (each ?? {}) as Partial<TransferCallback>;
  if (data === undefined) return false;
  const { externalId, id, amount, currency } = data;
  return ['SUCCESS', 'FAILED'].some((status) => lines.includes(`${externalId} ${status} ${id} ${amount} ${currency}`));
}
