import { writeFile } from 'node:fs/promises';
import express from 'express';
import { expect, test } from 'vitest';
import { transferCallbackRouter, memoryStore } from 'transfer-callbacks';
import { confirmWith, transferClient } from 'transfer-callbacks/client';
import { objects, startSandboxCli as start } from '../../../../test/cli/support.js';
import { freePort } from '../../../../test/support/servers/port.js';
import { check, makeBooks, serveHere } from './support.js';

/** An app with a key of its own, which asks the service at `port`. */
async function withKey(port: number, keys: { apiKey: string; apiSecret: string }): Promise<string> {
  const client = transferClient({ baseUrl: `http://127.0.0.1:${port}`, ...keys });
  const router = transferCallbackRouter({
    ...{ store: memoryStore(), logger: false, confirm: confirmWith(client) },
    ...{ onSuccess: () => undefined, onFailed: () => undefined },
  });
  return serveHere(express().use(router));
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
  const { out, ...ended } = await start(['check', '--to', url, '--port', String(port), '--json'], { env }).ended;
  expect(ended.code).toBe(0);
  expect(objects(out)).not.toContainEqual(expect.objectContaining({ verdict: 'wrong' }));
});

test('an app that asks another service is told the address of this one, and not to run `trigger`', async () => {
  const url = await withKey(await freePort(), keys);
  const port = await freePort();
  const { code, result } = await check(url, '--port', String(port));
  expect([code, result?.missing]).toEqual([2, expect.stringContaining(`be http://127.0.0.1:${port}.`)]);
  expect(result?.missing).not.toContain('trigger');
});

test('--prepare runs after the creation, with the id, the amount and the currency of the transfer', async () => {
  const { book, count, folder } = await makeBooks();
  const port = await freePort();
  const url = await serveHere(
    express().use(transferCallbackRouter({ store: memoryStore(), logger: false, onSuccess: book, onFailed: book })),
  );
  // The service knows each transfer of its own already. Those of strangers and of bodies have no `check-` in their names.
  const ask =
    `fetch("http://127.0.0.1:${port}/transactions/" + process.env.ID, ` +
    '{ headers: { "x-api-key": "sandbox-key", "x-api-secret": "sandbox-secret" } })' +
    '.then((response) => response.json()).then(({ data }) => { const { TRANSFER_ID, AMOUNT, CURRENCY, ID } = process.env; ' +
    'if (ID.startsWith("check-") ? data.id !== TRANSFER_ID || String(data.amount) !== AMOUNT || data.currency !== CURRENCY ' +
    ': data !== null || !TRANSFER_ID || AMOUNT !== "15000" || CURRENCY !== "XAF") process.exit(3); })';
  const script = `${folder}/ask.mjs`;
  await writeFile(script, ask);
  const args = ['--port', String(port), '--prepare', `"${process.execPath}" ${script}`, ...count];
  expect(await check(url, ...args)).toMatchObject({ code: 0, wrong: [], unseen: [] });
});

test('what was booked while --break was in force was not broken', async () => {
  const { book, count } = await makeBooks();
  const url = await serveHere(
    express().use(transferCallbackRouter({ store: memoryStore(), logger: false, onSuccess: book, onFailed: book })),
  );
  const { code, unseen, trial } = await check(url, ...count, '--break', 'true', '--mend', 'true');
  expect([code, unseen]).toEqual([0, ['handler-fails']]);
  expect(trial('handler-fails')?.because).toEqual([
    'It was booked while --break was in force: --break did not break it.',
  ]);
});
