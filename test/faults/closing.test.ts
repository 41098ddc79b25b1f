// What `closeOnSignal` does with the requests of an app beside its callbacks, and with several signals.
import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { connect } from 'node:http2';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { post } from '../support/helpers/post.js';
import { endMerchants, startMerchant } from '../support/programs/merchant.js';

const agent = new Agent({ keepAlive: true });
afterEach(async () => {
  agent.destroy();
  await endMerchants();
});

/** Longer than any test may take. */
const longMs = 600_000;

/** Sends a GET on a connection that is kept alive. */
async function ask(url: string): Promise<IncomingMessage> {
  const [response] = (await once(get(url, { agent }), 'response')) as [IncomingMessage];
  return response;
}

test('a request of the app gets the rest of timeoutMs, and does not hold a process that is done', async () => {
  const app = await startMerchant({ handlersWait: true, closeTimeoutMs: longMs });
  const checkout = ask(`${app.url}/checkout`);
  await app.says({ handling: 'checkout' });
  app.signal('SIGTERM');
  await app.says({ closing: true });
  // Longer than the least time for the other requests.
  await pause(1_500);
  app.tell('checkout', 'succeed');
  const response = await checkout;
  expect([response.statusCode, await text(response)]).toEqual([200, 'paid']);
  // Neither the connection that is kept alive nor a timer holds the process.
  expect(await app.exitCode).toBe(0);
});

test.each([
  ['until timeoutMs', 2_000, 2_000],
  ['for a second', 0, 1_000],
])('a stream that stays open holds the process %s, and is then cut', async (_how, timeoutMs, leastMs) => {
  const app = await startMerchant({ closeTimeoutMs: timeoutMs });
  const stream = await ask(`${app.url}/stream`);
  const cut = text(stream).catch((error: unknown) => (error as NodeJS.ErrnoException).code);
  app.signal('SIGTERM');
  const closed = (await app.says({ unfinished: 0 })) as { afterMs: number };
  expect(closed.afterMs).toBeGreaterThanOrEqual(leastMs);
  expect(await cut).toBe('ECONNRESET');
  expect(await app.exitCode).toBe(0);
});

test('an idle session of HTTP/2 is closed, and one with a delivery after its response', async () => {
  const app = await startMerchant({ handlersWait: true, closeTimeoutMs: longMs, isHttp2: true });
  const [idle, busy] = [connect(app.url), connect(app.url)];
  await Promise.all([once(idle, 'connect'), once(busy, 'connect')]);
  const delivery = busy.request({ ':method': 'POST', 'content-type': 'application/json' });
  const callback = transferSucceeded();
  delivery.end(JSON.stringify(callback));
  await app.says({ handling: callback.data.id });
  const idleClosed = once(idle, 'close');
  app.signal('SIGTERM');
  await idleClosed;
  app.tell(callback.data.id, 'succeed');
  expect(await text(delivery)).toBe('{"outcome":"processed"}');
  expect(await app.exitCode).toBe(0);
});

test('a stream of HTTP/2 that stays open is cut after timeoutMs', async () => {
  const app = await startMerchant({ closeTimeoutMs: 0, isHttp2: true });
  const session = connect(app.url);
  session.request({ ':path': '/stream' }).on('error', () => undefined);
  await app.says({ handling: 'stream' });
  const closed = once(session, 'close');
  app.signal('SIGTERM');
  await closed;
  expect(await app.exitCode).toBe(0);
});

test('two signals within a millisecond are one stop, and cut no handler', async () => {
  const app = await startMerchant({ handlersWait: true, closeTimeoutMs: longMs, isSignalledTwice: true });
  const callback = transferSucceeded();
  const delivered = post(app.url, callback);
  await app.says({ handling: callback.data.id });
  app.signal('SIGTERM');
  await app.says({ closing: true });
  app.tell(callback.data.id, 'succeed');
  expect(await delivered).toMatchObject({ status: 200 });
  await app.says({ unfinished: 0 });
  expect(await app.exitCode).toBe(0);
});
