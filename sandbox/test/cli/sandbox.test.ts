import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startMerchant } from '../service/support.js';
import { folderOf } from '../../../test/cli/app-support.js';
import { runSandboxInProcess as run } from '../../../test/cli/in-process.js';
import { longestLine, objects, startSandboxCli as start, type Surroundings } from '../../../test/cli/support.js';

/** Starts the sandbox, and returns how to create a transfer once it has greeted. */
async function greeted(args: readonly string[], surroundings?: Surroundings) {
  const started = start(['sandbox', ...args], surroundings);
  await expect.poll(() => started.said.out).toMatch(/\n {4}-d .+\n\n|"type":"started".+\n/);
  const greeting = started.said.out;
  const baseUrl = String(/http:\/\/[^\s"]+/.exec(greeting)?.[0]);
  const create = (body: object, apiKey = 'sandbox-key', apiSecret = 'sandbox-secret') =>
    fetch(`${baseUrl}/transactions/transfer`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'x-api-key': apiKey, 'x-api-secret': apiSecret },
      body: JSON.stringify(body),
    });
  return { ...started, greeting, baseUrl, create };
}

test('sandbox prints every attempt, without colours in a pipe, and ends with 0 on SIGINT', async () => {
  const { url } = await startMerchant([500]);
  const { child, said, ended, create } = await greeted(['--callback-url', url, '--speed', '1000']);
  expect((await create({ externalId: 'with\u001b[31mcolour' })).status).toBe(201);
  await expect.poll(() => said.out).toMatch(/← 500 {2}\d+ ms {2}next in 30 s\n[^]+← 200 {2}\d+ ms\n/);
  expect(said.out).toMatch(
    /\d\d:\d\d:\d\d {2}with\\u\{1b\}\[31mcolour {2}transfer\.success {2}15000 XAF {2}attempt 2\n/,
  );
  child.kill('SIGINT');
  const { code, out, err } = await ended;
  expect([code, err]).toEqual([0, '']);
  expect(out).not.toContain('\u001b');
});

test('the greeting shows every key with its secret, in 80 columns, and a curl command that works', async () => {
  const { greeting, baseUrl } = await greeted([]);
  expect(longestLine(greeting)).toBeLessThanOrEqual(80);
  for (const suffix of ['', '-expired', '-revoked', '-merchant-inactive']) {
    expect(greeting).toContain(`sandbox-key${suffix}`);
    expect(greeting).toContain(`sandbox-secret${suffix}`);
  }
  const curl = greeting.slice(greeting.indexOf('curl '));
  const headers = [...curl.matchAll(/-H '([^:]+): ([^']+)'/g)].map(([, name, value]) => [name, value]) as [
    string,
    string,
  ][];
  const body = String(/-d '(.+)'/.exec(curl)?.[1]);
  expect(JSON.parse(body)).toMatchObject({ callbackUrl: 'http://localhost:3000/callbacks/transfers' });
  const created = await fetch(`${baseUrl}/transactions/transfer`, { method: 'POST', headers, body });
  expect(created.status).toBe(201);
});

test.each<[string, string[], Record<string, string>]>([
  ['options', ['--api-key', 'my-key', '--api-secret', 'my-hidden'], {}],
  ['the environment', [], { SANDBOX_API_KEY: 'my-key', SANDBOX_API_SECRET: 'my-hidden' }],
])('a key and secret from %s are used, and the secret is not printed', async (_from, args, env) => {
  for (const format of [[], ['--json']]) {
    const { said, create } = await greeted([...args, ...format], { env });
    expect((await create({}, 'my-key', 'my-hidden')).status).toBe(201);
    expect((await create({})).status).toBe(400);
    expect(said.out).toContain('my-key');
    expect(said.out).not.toContain('my-hidden');
  }
});

test('the callbacks of a sandbox carry the token and the headers of a configuration, and the first 401 is explained', async () => {
  const secret = 'the-secret-of-the-endpoint';
  const { url, received } = await startMerchant([401, 401]);
  const config = `export const callbackUrl = '${url}/${secret}'; export const callbackHeaders = { 'X-Token': 'abc' };`;
  const cwd = await folderOf(config, 'dev.mjs');
  const { said, create } = await greeted(['--config', 'dev.mjs', '--header', 'X-More: d', '--speed', '1000'], { cwd });
  await create({});
  await expect.poll(() => said.out).toContain('← 200');
  const sent = received.map(({ headers }) => [headers['x-token'], headers['x-more']]);
  expect(sent).toEqual(Array(3).fill(['abc', 'd']));
  expect(said.out.match(/Hint: 401/g)).toHaveLength(1);
  expect(said.out).not.toContain(secret);
});

test('without --config the sandbox reads no file: it needs no app', async () => {
  const cwd = await folderOf("throw new Error('Redis is down');");
  const { create } = await greeted([], { cwd });
  expect((await create({})).status).toBe(201);
});

test('sandbox --json prints one object per line, has no console with --no-console, and ends with 0 on SIGTERM', async () => {
  const { child, ended, baseUrl } = await greeted(['--json', '--no-console']);
  expect((await fetch(`${baseUrl}/console/`)).status).toBe(404);
  child.kill('SIGTERM');
  const { code, out } = await ended;
  expect(code).toBe(0);
  expect(out).not.toContain('consoleUrl');
  expect(objects(out)).toMatchObject([
    {
      ...{ type: 'started', apiKey: 'sandbox-key', apiSecret: 'sandbox-secret' },
      keys: { revoked: { apiKey: 'sandbox-key-revoked', apiSecret: 'sandbox-secret-revoked' } },
    },
  ]);
});

test('sandbox shows in one line why it cannot start, with exit code 1', async () => {
  const { url } = await startMerchant();
  const { code, err } = await run('sandbox', '--port', new URL(url).port);
  expect(code).toBe(1);
  expect(err).toMatch(/^transfer-sandbox: listen EADDRINUSE[^\n]+\n$/);
});

/** A folder with a program in place of `xdg-open`, and the addresses that it was given. */
async function fakeOpener() {
  const folder = await mkdtemp(join(tmpdir(), 'transfer-callbacks-opener-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const opened = join(folder, 'opened');
  for (const name of ['xdg-open', 'open']) {
    await writeFile(join(folder, name), `#!/bin/sh\necho "$@" >> '${opened}'\n`, { mode: 0o755 });
  }
  return { env: { PATH: `${folder}:${String(process.env.PATH)}` }, opened: () => readFile(opened, 'utf8') };
}

test('sandbox --open opens the console that it prints', async () => {
  const { env, opened } = await fakeOpener();
  const { said, child, ended } = start(['sandbox', '--open'], { env });
  await expect.poll(async () => (await opened()).trim()).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/console\/$/);
  const address = (await opened()).trim();
  expect(said.out).toContain(`Console     ${address}\n`);
  expect((await fetch(address)).status).toBe(200);
  child.kill('SIGINT');
  expect((await ended).code).toBe(0);
});
