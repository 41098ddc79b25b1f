// What `closeOnSignal` does with the requests of an app beside its callbacks, and with several signals.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { connect } from 'node:http2';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { post } from '../support/helpers/post.js';
import { forkApp, kill } from '../support/programs/child.js';
import type { ClosingMessage, ClosingOptions } from '../support/programs/closing-app.js';

const started: ChildProcess[] = [];
const agent = new Agent({ keepAlive: true });
afterEach(async () => {
  agent.destroy();
  await Promise.all(started.splice(0).map(kill));
});

/** Longer than any test may take. */
const longMs = 600_000;

async function start(options: ClosingOptions) {
  const child = forkApp('closing-app.ts', options);
  started.push(child);
  const said: ClosingMessage[] = [];
  child.on('message', (message) => said.push(message as ClosingMessage));
  const find = <Name extends string>(name: Name) =>
    said.find((message): message is ClosingMessage & Record<Name, never> => name in message);
  const says = async (name: string): Promise<ClosingMessage> => {
    await expect.poll(() => find(name)).toBeDefined();
    return find(name) ?? expect.fail();
  };
  const { port } = (await says('port')) as { port: number };
  return {
    url: `http://127.0.0.1:${port}`,
    says,
    child,
    finish: () => child.send('finish'),
    exit: once(child, 'exit') as Promise<[code: number | null, signal: string | null]>,
  };
}

/** Sends a GET on a connection that is kept alive. */
async function ask(url: string): Promise<IncomingMessage> {
  const [response] = (await once(get(url, { agent }), 'response')) as [IncomingMessage];
  return response;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

test('a request of the app gets the rest of timeoutMs, and does not hold a process that is done', async () => {
  const app = await start({ timeoutMs: longMs });
  const checkout = ask(`${app.url}/checkout`);
  await app.says('waits');
  app.child.kill('SIGTERM');
  await app.says('isClosing');
  // Longer than the least time for the other requests.
  await pause(1_500);
  app.finish();
  const response = await checkout;
  expect([response.statusCode, await text(response)]).toEqual([200, 'paid']);
  // Neither the connection that is kept alive nor a timer holds the process.
  expect(await app.exit).toEqual([0, null]);
});

test.each([
  ['until timeoutMs', 2_000, 2_000],
  ['for a second', 0, 1_000],
])('a stream that stays open holds the process %s, and is then cut', async (_how, timeoutMs, leastMs) => {
  const app = await start({ timeoutMs });
  const stream = await ask(`${app.url}/stream`);
  const cut = text(stream).catch((error: unknown) => (error as NodeJS.ErrnoException).code);
  app.child.kill('SIGTERM');
  const closed = (await app.says('unfinished')) as { afterMs: number };
  expect(closed.afterMs).toBeGreaterThanOrEqual(leastMs);
  expect(await cut).toBe('ECONNRESET');
  expect(await app.exit).toEqual([0, null]);
});

test('an idle session of HTTP/2 is closed, and one with a delivery after its response', async () => {
  const app = await start({ timeoutMs: longMs, isHttp2: true });
  const [idle, busy] = [connect(app.url), connect(app.url)];
  await Promise.all([once(idle, 'connect'), once(busy, 'connect')]);
  const delivery = busy.request({ ':method': 'POST', 'content-type': 'application/json' });
  delivery.end(JSON.stringify(transferSucceeded()));
  await app.says('waits');
  const idleClosed = once(idle, 'close');
  app.child.kill('SIGTERM');
  await idleClosed;
  app.finish();
  expect(await text(delivery)).toBe('{"outcome":"processed"}');
  expect(await app.exit).toEqual([0, null]);
});

test('a stream of HTTP/2 that stays open is cut after timeoutMs', async () => {
  const app = await start({ timeoutMs: 0, isHttp2: true });
  const session = connect(app.url);
  session.request({ ':path': '/stream' }).on('error', () => undefined);
  await app.says('waits');
  const closed = once(session, 'close');
  app.child.kill('SIGTERM');
  await closed;
  expect(await app.exit).toEqual([0, null]);
});

test('two signals within a millisecond are one stop, and cut no handler', async () => {
  const app = await start({ timeoutMs: longMs, isSignalledTwice: true });
  const delivered = post(`${app.url}/callbacks`, transferSucceeded());
  await app.says('waits');
  app.child.kill('SIGTERM');
  await app.says('isClosing');
  app.finish();
  expect(await delivered).toMatchObject({ status: 200 });
  expect(await app.says('unfinished')).toMatchObject({ unfinished: 0 });
  expect(await app.exit).toEqual([0, null]);
});
