// What `check` says of an app that ends, refuses or is silent, and what it shows beside its rows.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { TransferCallback } from 'transfer-callbacks';
import { expect, onTestFinished, test } from 'vitest';
import { startSandboxCli as start } from '../../../../test/cli/support.js';
import { checkPaystack, type Ways } from './by-hand.js';
import { checkNamed, key } from './defined-support.js';
import { checkLoudly, isWhole, makeBooks, only, readText, serveBodies } from './support.js';
import { serveForTest } from '../../../../test/support/servers/serve-for-test.js';

const signed = { CALLBACK_SECRET: key };
const fast = ['--settle', '2'];

/** Serves like `handle`, at one port, from which it can be gone. */
async function serveMortal(
  handle: (body: string, end: (status: number) => void, die: (backMs?: number) => void) => void,
): Promise<string> {
  let port = 0;
  const listen = async (): Promise<Server> => {
    const server = createServer((request, response) => {
      const die = (backMs?: number): void => {
        server.closeAllConnections();
        server.close();
        if (backMs !== undefined) void pause(backMs).then(listen);
      };
      void readText(request).then((body) => {
        handle(body, (status) => void response.writeHead(status).end(), die);
      });
    });
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    ({ port } = server.address() as AddressInfo);
    onTestFinished(() => void server.close());
    return server;
  };
  await listen();
  return `http://127.0.0.1:${port}/`;
}

const isHarmless = (body: string): boolean => body !== 'null';

test.each<[what: string, backMs: number | undefined, because: string]>([
  ['ends with a body is wrong, and what follows is not seen', undefined, 'Your app has ended'],
  ['comes back after such a body restarts', 600, 'Your app ends with such a body and restarts'],
])('an app that %s', async (_what, backMs, because) => {
  const url = await serveMortal((body, end, die) => {
    if (isHarmless(body)) end(body.startsWith('{') ? 200 : 400);
    else die(backMs);
  });
  const { code, trial, unseen } = await checkLoudly(url, '--settle', backMs === undefined ? '2' : '5');
  expect([code, trial('unbookable')?.verdict]).toEqual([1, 'wrong']);
  expect(trial('unbookable')?.because[0]).toContain(because);
  if (backMs !== undefined) return;
  expect(trial('flip')?.because).toEqual(['Your app had ended before.']);
  expect(unseen).toContain('undocumented');
});

test('a connection that is closed, while the app is there, refuses nothing and is a note', async () => {
  const url = await serveBodies((body, request) => {
    if (/UNKNOWN|unknown/.test(body)) request.socket.destroy();
    return body.startsWith('{"') ? 200 : 400;
  });
  const { trial } = await checkLoudly(url, ...fast);
  expect(trial('unknown-state')).toMatchObject({
    verdict: 'not seen',
    notes: [expect.stringContaining('your app was there')],
  });
});

test('behind a proxy an app that has ended is a 502', async () => {
  let isOver = false;
  const url = await serveBodies((body) => {
    isOver ||= !isHarmless(body);
    return isOver ? 502 : body.startsWith('{') ? 200 : 400;
  });
  const { code, trial } = await checkLoudly(url, ...fast);
  expect([code, trial('unbookable')?.because[0]]).toEqual([1, expect.stringContaining('Your app has ended')]);
});

test('RazorpayX waits five seconds: what comes later was not acknowledged', async () => {
  const url = await serveBodies(() => pause(7_000, 200));
  const { code, trial } = await checkNamed('razorpayx', url, [], signed);
  expect([code, trial('success')?.because[0]]).toEqual([1, expect.stringContaining('The service waits no longer.')]);
});

test('a late response is wrong in each row, and below it are the ids of its payouts', async () => {
  const url = await serveBodies((body) => pause(body.includes('payout.failed') ? 7_000 : 0, 200));
  const args = ['check', '--service', 'razorpayx', '--to', url, ...only('failed')];
  const { code, out } = await start(args, { env: signed }).ended;
  expect([code, out]).toEqual([1, expect.stringMatching(/\n✗ failed .* timeout\n/)]);
  expect(out).toMatch(/\n {4}Payouts: check-failed-[\w-]+\n/);
});

test('a refusal shows what the endpoint said, rows can be skipped, and each row has its ids', async () => {
  const ways: Ways = {
    before(body, response) {
      if (body.includes('"transfer.failed"')) response.writeHead(422).end('{"detail":"amount\u0007 too low"}');
      return undefined;
    },
  };
  const { code, trial } = await checkPaystack(ways, '--skip', 'burst');
  expect([code, trial('burst')?.because]).toEqual([1, ['It was skipped.']]);
  expect(trial('failed')?.because[0]).toContain('It responded: {"detail":"amount');
  expect(trial('failed')?.because[0]).not.toContain('\u0007');
  expect(trial('failed')).toMatchObject({
    ids: [expect.stringMatching(/^check-failed-/)],
    said: [expect.stringContaining('too low')],
  });
});

test('Ctrl+C lists the payouts that may be booked', async () => {
  let requests = 0;
  const url = await serveBodies(() => void (requests += 1));
  const { child, ended } = start(['check', '--to', url, '--real-time']);
  await expect.poll(() => requests).toBeGreaterThan(0);
  child.kill('SIGINT');
  const { code, err } = await ended;
  expect([code, err]).toEqual([2, expect.stringMatching(/^Ended\. These payouts may be booked: check-success-/)]);
});

test('--method PUT is for a service that sends it', async () => {
  const url = await serveBodies((_body, { method }) => (method === 'PUT' ? 200 : 405));
  const posted = await checkLoudly(url);
  expect([posted.code, posted.result?.missing]).toEqual([2, expect.stringContaining('--method PUT')]);
  expect((await checkLoudly(url, '--method', 'PUT')).trial('success')?.verdict).toBe('right');
});

const cutShort = 'Two requests in a row got no response within 3 s. The rest of this row is skipped.';

test('an endpoint that never responds is judged after two attempts, within two minutes', async () => {
  let requests = 0;
  const url = await serveForTest(() => (requests += 1));
  const startedAt = performance.now();
  const { code, err, result } = await checkLoudly(url);
  expect([code, requests]).toEqual([2, 2]);
  expect(err).toMatch(/^success: Two requests in a row got no response within 30 s\./);
  expect(result?.missing).toMatch(/^The first callback got no response, so that nothing could be seen\. /);
  expect(performance.now() - startedAt).toBeLessThan(120_000);
});

test('what gets no response is said immediately, and the rest of its row is skipped', async () => {
  const { book, count } = await makeBooks();
  const seen = new Set<string>();
  async function handle(body: string): Promise<number> {
    const callback = JSON.parse(body) as TransferCallback;
    if (!isWhole(callback)) throw new Error('no callback');
    const isNew = !seen.has(callback.data.id);
    seen.add(callback.data.id);
    if (isNew) await book(callback);
    return 200;
  }
  // A promise that rejects in an async handler of Express 4 leaves the request without a response, too.
  const url = await serveBodies((body) => handle(body).catch(() => new Promise<never>(() => undefined)));
  const { code, err, wrong, less, unseen, trial } = await checkLoudly(url, '--patience', '3', ...count);
  expect([code, wrong, less]).toEqual([0, [], ['unbookable', 'flip', 'other-amount']]);
  expect(unseen).toEqual(['unknown-state', 'list', 'undocumented']);
  expect(err).toBe(`unbookable: ${cutShort}\nundocumented: ${cutShort}\n`);
  expect(trial('undocumented')?.because).toEqual([cutShort]);
  expect(trial('unbookable')?.responses.slice(-2)).toEqual(['timeout', 'timeout']);
  expect(trial('malformed')).toMatchObject({ responses: ['timeout', '200'], verdict: 'right' });
});

test('a response that begins in time and does not end is no silence', async () => {
  const url = await serveForTest((request, response) => {
    request.resume();
    response.writeHead(200, { 'Content-Length': 5 }).write('o');
  });
  const { code, err, result } = await checkLoudly(url, '--patience', '3');
  expect([code, err]).toEqual([2, '']);
  expect(result?.missing).toContain('Your app began a response, and did not end it in time.');
});

test('in a terminal the row that is played is shown on standard error, and cleared at the end', async () => {
  const url = await serveBodies(() => 200);
  const { ended } = start(['check', '--to', url], { terminal: true });
  const { err } = await ended;
  expect(err).toContain('success, row 1 of 19\r');
  expect(err).toContain('failed-burst, row 7 of 19\r');
  expect(err.endsWith('\u001b[K')).toBe(true);
});

test('without a terminal a row that takes long is named', async () => {
  const url = await serveBodies(() => pause(12_000, 500));
  const { said, ended, child } = start(['check', '--to', url]);
  await expect.poll(() => said.err).toBe('Still waiting for the end of success, row 1 of 19.\n');
  child.kill();
  await ended;
});
