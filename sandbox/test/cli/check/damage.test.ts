// What `check` says of an app that ends or refuses, and what it shows beside its rows.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { startSandboxCli as start } from '../../../../test/cli/support.js';
import { checkNamed, key, servePaystack } from './defined-support.js';
import { checkLoudly, makeBooks, only, readText, serveHere } from './support.js';

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

test('an app that ends with a body is wrong, and what follows is not seen', async () => {
  const url = await serveMortal((body, end, die) => {
    if (isHarmless(body)) end(body.startsWith('{') ? 200 : 400);
    else die();
  });
  const { code, trial, unseen } = await checkLoudly(url, ...fast);
  expect([code, trial('unbookable')?.verdict, trial('flip')?.because]).toEqual([
    1,
    'wrong',
    ['Your app had ended before.'],
  ]);
  expect(trial('unbookable')?.because[0]).toContain('Your app has ended');
  expect(unseen).toContain('undocumented');
});

test('an app that comes back after such a body restarts', async () => {
  const url = await serveMortal((body, end, die) => {
    if (isHarmless(body)) end(body.startsWith('{') ? 200 : 400);
    else die(600);
  });
  const { code, trial } = await checkLoudly(url, '--settle', '5');
  expect([code, trial('unbookable')?.because[0]]).toEqual([
    1,
    expect.stringContaining('Your app ends with such a body and restarts'),
  ]);
});

test('a connection that is closed, while the app is there, refuses nothing and is a note', async () => {
  const url = await serveHere((request, response) => {
    void readText(request).then((body) => {
      if (/UNKNOWN|unknown/.test(body)) request.socket.destroy();
      else response.writeHead(body.startsWith('{"') ? 200 : 400).end();
    });
  });
  const { trial } = await checkLoudly(url, ...fast);
  expect(trial('unknown-state')).toMatchObject({
    verdict: 'not seen',
    notes: [expect.stringContaining('your app was there')],
  });
});

test('behind a proxy an app that has ended is a 502', async () => {
  let isOver = false;
  const url = await serveHere((request, response) => {
    void readText(request).then((body) => {
      isOver ||= !isHarmless(body);
      response.writeHead(isOver ? 502 : body.startsWith('{') ? 200 : 400).end();
    });
  });
  const { code, trial } = await checkLoudly(url, ...fast);
  expect([code, trial('unbookable')?.because[0]]).toEqual([1, expect.stringContaining('Your app has ended')]);
});

test('RazorpayX waits five seconds: what comes later was not acknowledged', async () => {
  const url = await serveHere((request, response) => {
    request.resume().on('end', () => setTimeout(() => response.end(), 7_000));
  });
  const { code, trial } = await checkNamed('razorpayx', url, [], signed);
  expect([code, trial('success')?.because[0]]).toEqual([1, expect.stringContaining('The service waits no longer.')]);
});

test('a late response is wrong in each row, and below it are the ids of its payouts', async () => {
  const url = await serveHere((request, response) => {
    void readText(request).then((body) => {
      setTimeout(() => response.end(), body.includes('payout.failed') ? 7_000 : 0);
    });
  });
  const args = ['check', '--service', 'razorpayx', '--to', url, ...only('failed')];
  const { code, out } = await start(args, { env: signed }).ended;
  expect([code, out]).toEqual([1, expect.stringMatching(/\n✗ failed .* timeout\n/)]);
  expect(out).toMatch(/\n {4}Payouts: check-failed-[\w-]+\n/);
});

test('a refusal shows what the endpoint said, rows can be skipped, and each row has its ids', async () => {
  const { book, count } = await makeBooks();
  const url = await servePaystack(book, {
    before(callback, response) {
      if (callback?.event !== 'transfer.failed') return undefined;
      response.writeHead(422).end('{"detail":"amount\u0007 too low"}');
      return 0;
    },
  });
  const { code, trial } = await checkNamed('paystack', url, ['--skip', 'burst', ...count], signed);
  expect([code, trial('burst')?.because]).toEqual([1, ['It was skipped.']]);
  expect(trial('failed')?.because[0]).toContain('It responded: {"detail":"amount');
  expect(trial('failed')?.because[0]).not.toContain('\u0007');
  expect(trial('failed')).toMatchObject({
    ids: [expect.stringMatching(/^check-failed-/)],
    said: [expect.stringContaining('too low')],
  });
  const args = ['check', '--to', url, '--skip', 'burts'];
  expect((await start(args).ended).err).toContain('Did you mean `burst`?');
});

test('Ctrl+C lists the payouts that may be booked', async () => {
  let requests = 0;
  const url = await serveHere((request, response) => {
    requests += 1;
    request.resume().on('end', () => response.end());
  });
  const { child, ended } = start(['check', '--to', url, '--real-time']);
  await expect.poll(() => requests).toBeGreaterThan(0);
  child.kill('SIGINT');
  const { code, err } = await ended;
  expect([code, err]).toEqual([2, expect.stringMatching(/^Ended\. These payouts may be booked: check-success-/)]);
});

test('--method PUT is for a service that sends it', async () => {
  const url = await serveHere((request, response) => {
    request.resume().on('end', () => response.writeHead(request.method === 'PUT' ? 200 : 405).end('no'));
  });
  const posted = await checkLoudly(url);
  expect([posted.code, posted.result?.missing]).toEqual([2, expect.stringContaining('--method PUT')]);
  expect((await checkLoudly(url, '--method', 'PUT')).trial('success')?.verdict).toBe('right');
});

test('the first line of cmd.exe in the help is one argument there', async () => {
  const { out } = await start(['help', 'check']).ended;
  const line = out.split('\n').find((each) => each.includes('%ID% %STATUS%')) ?? '';
  // cmd.exe knows no backslash: what it acts on must be between its quotes.
  const outside = line.split('"').filter((_each, index) => index % 2 === 0);
  expect(outside.join('')).not.toMatch(/[<>|&^]/);
  // The program splits what is left as CommandLineToArgvW does.
  const [, value = ''] = /--count "((?:\\"|[^"])*)"$/.exec(line.trim()) ?? [];
  expect(value.replaceAll('\\"', '"')).toBe('find /c "%ID% %STATUS%" < ledger.txt');
});
