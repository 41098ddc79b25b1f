import { execFile } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import type { RequestListener, Server } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { hmacSignature, transferCallbackListener } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { root } from '../docs/pages.js';
import { kill } from '../support/programs/child.js';
import { post } from '../support/helpers/post.js';
import { recordingOptions } from '../support/helpers/logger.js';
import { serveForTest } from '../support/servers/serve-for-test.js';
import { token, type Reply } from './cases.js';
import { bun, deno, hosts } from './hosts.js';
import { hostsFolder } from './programs.js';
import { findHost, pagePath, renderHost, renderPage } from './page.js';
import { startHost, tryHost } from './start.js';

const run = promisify(execFile);

/** Ends what hangs. One host is built. */
const stepMs = 600_000;

let page: string;
let listener: Reply[];

beforeAll(async () => {
  const [host] = hosts;
  listener = await tryHost(host ?? expect.fail('There is no host.'));
  page = await readFile(join(root, pagePath), 'utf8');
}, stepMs);

describe('the examples of hosts', () => {
  test.each(hosts.map((host) => [host.name, host] as const))(
    '%s responds as docs/hosts.md shows',
    async (_, host) => {
      expect(findHost(page, host)).toBe(renderHost(host, await tryHost(host), listener));
    },
    stepMs,
  );

  test('docs/hosts.md shows the responses of the listener, all hosts and all reasons', () => {
    const rendered = hosts.map((host) => findHost(page, host));
    expect(page).toBe(renderPage(page, rendered, listener));
  });

  test('every file is that of a host, and compiles', { timeout: stepMs }, async () => {
    const files = (await readdir(hostsFolder)).filter((file) => file.endsWith('.ts'));
    const started = hosts.map(({ file }) => file);
    expect(files.filter((file) => !started.includes(file))).toEqual(['options.ts']);
    // Without bun.ts and deno.ts, which use globals whose types would clash with those of Node.
    const compiler = join(root, 'node_modules/typescript/bin/tsc');
    const compiled = await run(process.execPath, [compiler, '--noEmit', '-p', hostsFolder]).catch(
      (error: unknown) => error as { stdout: string },
    );
    expect(compiled.stdout).toBe('');
  });
});

test('NestJS closes the receiver before its server: a running handler finishes, others are refused', async () => {
  const host = hosts.find(({ file }) => file === 'nestjs.ts') ?? expect.fail('There is no such host.');
  const { child, url } = await startHost(host);
  onTestFinished(() => kill(child));
  const deliver = (facts = {}) =>
    post(url, transferSucceeded(facts), { headers: { 'X-Callback-Token': token, Connection: 'close' } });
  const running = deliver({ id: 'slow' });
  // A later delivery that is processed shows that the slow one has begun.
  expect((await deliver()).status).toBe(200);
  child.kill('SIGTERM');
  let status = 200;
  while (status === 200) ({ status } = await deliver());
  expect(status).toBe(503);
  expect((await running).status).toBe(200);
  await once(child, 'exit');
});

test("Google's framework hands a signed body over as it was signed, although it decodes UTF-7 and forms", async () => {
  const load = createRequire(join(hostsFolder, 'package.json'));
  const { http } = load('@google-cloud/functions-framework') as { http: (name: string, listener: unknown) => void };
  const { getTestServer } = load('@google-cloud/functions-framework/testing') as {
    getTestServer: (name: string) => Server;
  };
  const { options, handled } = recordingOptions();
  const verify = hmacSignature({ header: 'x-signature', secrets: token });
  http('signed', transferCallbackListener({ ...options, verify }));
  const [listenAsGoogle] = getTestServer('signed').listeners('request') as [RequestListener];
  const url = await serveForTest(listenAsGoogle);
  const callback = transferFailed({
    provider: '+ACI-,+ACI-amount+ACI-:999999,+ACI-x+ACI-:+ACI-&data[amount]=999999&z=',
  });
  const body = Buffer.from(JSON.stringify(callback));
  const signature = createHmac('sha256', token).update(body).digest('hex');
  for (const type of ['json; charset=utf-7', 'x-www-form-urlencoded', 'json']) {
    const headers = { 'Content-Type': `application/${type}`, 'X-Signature': signature };
    expect((await post(url, body, { headers })).status).toBe(200);
  }
  expect(handled).toEqual([callback]);
});

const permissions = ['--allow-net', '--allow-env', '--allow-read', '--allow-sys=hostname'];
test.each([
  ['Bun', () => [bun(), 'express.ts']],
  ['Deno', () => [deno(), 'run', '--no-prompt', ...permissions, 'express.ts']],
])('the router of Express runs on %s', { timeout: stepMs }, async (name, command) => {
  const { child, url } = await startHost({ name, file: 'express.ts', command });
  onTestFinished(() => kill(child));
  expect((await post(url, transferSucceeded(), { headers: { 'X-Callback-Token': token } })).status).toBe(200);
});
