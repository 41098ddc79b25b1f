import { describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  memoryStore,
  transferCallbackListener,
  transferToken,
  type TransferCallback,
  type TransferCallbackOptions,
} from 'transfer-callbacks';
import type { TransferSandboxOptions } from 'transfer-callbacks/sandbox';
import { create, startMerchant, startSandbox } from '../sandbox/support.js';
import { serve } from '../support/serve.js';
import { freePort } from '../support/port.js';
import { folderOf } from './inspect-support.js';
import { longestLine, objects, start } from './support.js';

// Each command is a separate process, which takes seconds on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

const secret = 'the-secret-of-the-endpoint';

/** The sandbox's service with some transfers, none of which has sent its callback. */
async function startService(...given: [TransferSandboxOptions, ...string[]] | string[]) {
  const [options, externalIds] = typeof given[0] === 'object' ? [given[0], given.slice(1) as string[]] : [{}, given];
  const sandbox = await startSandbox({ finalAfterMs: 0, ...options });
  for (const externalId of externalIds as string[]) await create(sandbox, { externalId, amount: 250 });
  await sandbox.idle();
  const env = {
    TRANSFER_SERVICE_URL: sandbox.baseUrl,
    TRANSFER_API_KEY: 'sandbox-key',
    TRANSFER_API_SECRET: 'sandbox-secret',
    CALLBACK_SECRET: secret,
    NO_COLOR: '1',
  };
  return { sandbox, env, resend: (...args: string[]) => start(['resend', ...args], { env }).ended };
}

/** This package's listener. Returns its address, and the externalIds that were handled. */
async function startListener(options: Partial<TransferCallbackOptions> = {}) {
  const handled: string[] = [];
  const handle = ({ data }: TransferCallback): void => void handled.push(data.externalId);
  const listener = { store: memoryStore(), onSuccess: handle, onFailed: handle, logger: false as const };
  const { url, close } = await serve(transferCallbackListener({ ...listener, ...options }));
  onTestFinished(close);
  return { url, handled };
}

test('a missed callback is resent by either id, and handled once however often it is resent', async () => {
  const { sandbox, resend } = await startService('success-1');
  const { url, handled } = await startListener();
  const first = await resend('success-1', '--to', url);
  const again = await resend(String(sandbox.transfers()[0]?.id), '--to', url);
  expect([first.code, first.err, again.code]).toEqual([0, '', 0]);
  expect(first.out.replace(/\d+ ms/, 'N ms').split('\n')).toEqual([
    'success-1  transfer.success  250 XAF  mobile_money  MTN',
    '  ← 200  N ms  processed',
    'Acknowledged.',
    '',
  ]);
  expect(again.out).toMatch(/← 200 {2}\d+ ms {2}duplicate\n/);
  expect(handled).toEqual(['success-1']);
});

test('the callback is what the service sends, and is sent once, whatever the response is', async () => {
  const { url, received, bodies } = await startMerchant([200, 500]);
  const { sandbox, resend } = await startService();
  await create(sandbox, { externalId: 'failed-1', amount: 250, callbackUrl: url });
  await sandbox.idle();
  const { code, out } = await resend('failed-1', '--to', url);
  expect(code).toBe(1);
  expect(out).toMatch(/\n {2}← 500 {2}\d+ ms\nNot acknowledged\.\nYour handler threw\. See the log of your app\.\n$/);
  expect(received).toHaveLength(2);
  expect(received[1]).toMatchObject({ method: 'POST', headers: { 'content-type': 'application/json' } });
  const [sent, resent] = bodies().map((body) => JSON.parse(body) as unknown);
  expect(resent).toEqual(sent);
});

test('a secured endpoint gets its token and its headers from the environment, and no secret is printed', async () => {
  const { env } = await startService('success-1');
  const { url } = await startListener({
    verify: [transferToken(secret), ({ headers }) => headers['x-token'] === secret],
  });
  const resend = (...args: string[]) =>
    start(['resend', 'success-1', '--to-env', 'CALLBACK_URL', ...args], { env: { ...env, CALLBACK_URL: url } }).ended;
  const without = await resend();
  expect(without.code).toBe(1);
  expect(without.out).toMatch(/← 401 .*\nNot acknowledged\.\nA verifier refused the sender\./);
  const secured = ['--transfer-token-env', 'CALLBACK_SECRET', '--header-env', 'X-Token: CALLBACK_SECRET'];
  for (const format of [[], ['--json']]) {
    const { code, out, err } = await resend(...secured, ...format);
    expect([code, err]).toEqual([0, '']);
    expect(out).not.toContain(secret);
  }
});

test('a 2xx that is not from this package is not an acknowledgement', async () => {
  const { resend } = await startService('success-1');
  for (const body of ['<html>Sign in</html>', '{"outcome":"ok"}', '']) {
    const { url, close } = await serve((_request, response) => response.end(body));
    onTestFinished(close);
    const { code, out } = await resend('success-1', '--to', url);
    expect(code).toBe(1);
    expect(out).toMatch(/← 200 {2}\d+ ms.*\nNot acknowledged\.\nIt is a 2xx, but not from transfer-callbacks\. /);
  }
});

test('a handler that is slower than --timeout may still succeed, which is said', async () => {
  const { resend } = await startService('success-1');
  const { url, close } = await serve(() => undefined);
  onTestFinished(close);
  const { code, out } = await resend('success-1', '--to', url, '--timeout', '100');
  expect(code).toBe(1);
  expect(out).toContain('← no response within 100 ms');
  expect(out.replaceAll('\n', ' ')).toContain('The handler may still be running: inspect the transfer.');
});

test('https in capitals is https', async () => {
  const { resend } = await startService('success-1');
  const { out } = await resend('success-1', '--to', `HTTPS://127.0.0.1:${await freePort()}/`);
  expect(out).toContain('ECONNREFUSED');
});

test('the store of the app tells whether the record may be lost, and the file of the app is read', async () => {
  const { sandbox, env } = await startService('success-1');
  const { url } = await startListener();
  const cwd = await folderOf(`
    import { memoryStore } from 'transfer-callbacks';
    import { transferClient } from 'transfer-callbacks/client';
    export const store = memoryStore(); // Nothing was claimed in it.
    export const client = transferClient({ baseUrl: '${sandbox.baseUrl}', apiKey: 'sandbox-key', apiSecret: 'sandbox-secret' });
  `);
  const resend = (...args: string[]) => start(['resend', 'success-1', '--to', url, ...args], { env, cwd }).ended;
  const { code, out } = await resend();
  expect(code).toBe(1);
  expect(out.replaceAll('\n', ' ')).toMatch(
    /^Not sent\. There is no record, which proves nothing\. .* then add --anyway\. $/,
  );
  expect((await resend('--anyway')).code).toBe(0);
});

test('with --json one object tells what was sent and what came back', async () => {
  const { sandbox, resend } = await startService('success-1');
  const { url } = await startListener();
  const { out } = await resend('success-1', '--to', url, '--json');
  const { id } = sandbox.transfers()[0] ?? expect.fail();
  expect(objects(out)).toMatchObject([
    {
      type: 'resend',
      sent: true,
      id,
      externalId: 'success-1',
      event: 'transfer.success',
      acknowledged: true,
      status: 200,
    },
  ]);
  expect(out).not.toMatch(/237670000000|walletNumber/);
  const refused = await resend('unheard-of', '--to', url, '--json');
  expect(objects(refused.out)).toEqual([
    { type: 'resend', sent: false, because: expect.stringContaining('404') as string },
  ]);
});

describe('nothing is sent', () => {
  test('for a transfer that is open or unknown, or whose record may have expired', async () => {
    // The service is at the time of its example: the transfers became final more than 7 days ago.
    const { resend, sandbox } = await startService({ clock: 'manual' }, 'query-lags-1', 'success-1');
    await sandbox.advance(1_000);
    const { url, received } = await startMerchant();
    const results = [
      await resend('query-lags-1', '--to', url),
      await resend('unheard-of', '--to', url),
      await resend('success-1', '--to', url),
    ];
    expect(results.map(({ code }) => code)).toEqual([1, 1, 1]);
    expect(results.map(({ out }) => out)).toEqual([
      'Not sent. The service has not finished this transfer: its status is PENDING.\n',
      'Not sent. The service responded with 404. This does not mean that the transfer\nhas failed.\n',
      expect.stringMatching(
        /^Not sent\. There is no record, which proves nothing\..*has been\s+final for longer.*add\s--anyway\.\n$/s,
      ) as string,
    ]);
    for (const { out } of results) expect(longestLine(out)).toBeLessThanOrEqual(80);
    expect(received).toHaveLength(0);
    const anyway = await resend('success-1', '--to', url, '--anyway');
    expect(anyway.out).toContain('← 200');
    expect(received).toHaveLength(1);
  });

  test('when the service cannot be read, with exit code 3', async () => {
    const { env } = await startService();
    const { url, received } = await startMerchant();
    const down = { ...env, TRANSFER_SERVICE_URL: `http://127.0.0.1:${await freePort()}` };
    const { code, out } = await start(['resend', 'success-1', '--to', url], { env: down }).ended;
    expect([code, received.length]).toEqual([3, 0]);
    expect(out).toMatch(/^Not sent\. No response came/);
  });
});

test('an endpoint that cannot be reached is exit code 1, and https may be anywhere', async () => {
  const { resend } = await startService('success-1');
  for (const to of [`http://127.0.0.1:${await freePort()}`, 'https://merchant.invalid/callbacks']) {
    const { code, out } = await resend('success-1', '--to', to);
    expect(code).toBe(1);
    expect(out).toMatch(/\n {2}← .*(ECONNREFUSED|merchant\.invalid|no response|no response).*\nNot acknowledged\.\n/);
  }
});
