import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Queue, Worker } from 'bullmq';
import express from 'express';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  hmacSignature,
  memoryStore,
  transferCallbackRouter,
  urlToken,
  type TransferCallback,
} from 'transfer-callbacks';
import { transferService } from 'transfer-callbacks/client';
import { runSandboxCli as run, startSandboxCli as start } from '../../../../test/cli/support.js';
import { freePort } from '../../../../test/support/servers/port.js';
import { startRedisForTest } from '../../../../test/support/servers/redis-for-file.js';
import { byHand, check, isWhole, makeBooks, only, serveBodies, withRouter, writeFiles, type Book } from './support.js';
import { serveForTest } from '../../../../test/support/servers/serve-for-test.js';

const right = { code: 0, wrong: [], unseen: [] };
describe('no right endpoint is called wrong:', () => {
  test('the router, with its address as a forger knows it', async () => {
    const { book, commands } = await makeBooks();
    const router = transferCallbackRouter({
      ...{ store: memoryStore(), verify: urlToken('the-secret-of-the-url'), logger: false },
      ...{ onSuccess: book, onFailed: book },
    });
    const url = await serveForTest(express().use('/callbacks', router));
    const to = `${url}/callbacks/the-secret-of-the-url`;
    expect(await check(to, '--strict', '--forged', `${url}/callbacks/other`, ...commands)).toMatchObject(right);
  });

  test('an app that asks the service, which is at --port', async () => {
    const { book, commands } = await makeBooks();
    const port = await freePort();
    const keys = { apiKey: 'sandbox-key', apiSecret: 'sandbox-secret' };
    const client = transferService({ baseUrl: `http://127.0.0.1:${port}`, ...keys });
    const url = await withRouter({ service: client, confirm: true, onSuccess: book, onFailed: book });
    const args = ['--strict', '--forged', url, '--port', String(port), ...commands];
    expect(await check(url, ...args)).toMatchObject(right);
  });

  test('an app that verifies signatures, which the configuration makes', async () => {
    const { book, commands, folder } = await makeBooks();
    const secrets = 'the-secret-of-the-signature';
    const verify = hmacSignature({ header: 'x-signature', secrets });
    const url = await withRouter({ verify, onSuccess: book, onFailed: book });
    const config = `import { createHmac } from 'node:crypto';
      export const callbackUrl = '${url}';
      const sign = (body) => createHmac('sha256', '${secrets}').update(body).digest('hex');
      export const callbackHeaders = (body) => ({ 'x-signature': sign(body) });`;
    await writeFiles(folder, { 'signed.config.mjs': config });
    const ended = await run(
      'check',
      '--config',
      join(folder, 'signed.config.mjs'),
      '--strict',
      '--forged',
      url,
      ...commands,
    );
    expect([ended.code, ended.out, ended.err]).toEqual([0, expect.stringContaining(', 0 wrong, 0 not seen.'), '']);
  });

  test.each([300, 900, 6_000])('a durable queue whose worker is %i ms late', async (lateMs) => {
    const { book, commands } = await makeBooks();
    const { port } = await startRedisForTest();
    const connection = { host: '127.0.0.1', port };
    const queue = new Queue<TransferCallback>('outcomes', { connection });
    const worker = new Worker<TransferCallback>('outcomes', ({ data }) => pause(lateMs).then(() => book(data)), {
      ...{ connection, concurrency: 50 },
    });
    onTestFinished(async () => {
      await worker.close();
      await queue.close();
    });
    const enqueue = async (callback: TransferCallback): Promise<void> => {
      const jobId = `transfer-${encodeURIComponent(callback.data.id)}`;
      const backoff = { type: 'exponential', delay: 1_000 };
      await queue.add(callback.event, callback, { jobId, attempts: 10, backoff });
    };
    const url = await withRouter({ onSuccess: enqueue, onFailed: enqueue });
    const checked = await check(url, '--strict', ...commands);
    expect(checked).toMatchObject(right);
    expect(checked.trial('success')?.notes).toEqual([expect.stringContaining('before it was booked')]);
  });

  /** Remembers an id for five seconds before it books, and does not forget it if that fails. */
  function leaseOfFiveSeconds(book: Book): Promise<string> {
    const leases = new Map<string, number>();
    const done = new Set<string>();
    return byHand(async (callback) => {
      if (!isWhole(callback)) return 400;
      const { id } = callback.data;
      if (done.has(id)) return 200;
      if (Date.now() < (leases.get(id) ?? 0)) return 409;
      leases.set(id, Date.now() + 5_000);
      await book(callback);
      done.add(id);
      return undefined;
    });
  }

  test.each<[string[], unseen: string[], advice: RegExp[]]>([
    [[], ['handler-fails'], [/try --real-time/]],
    [['--real-time'], [], []],
  ])(
    'a lease of five real seconds that a failed attempt does not release, with %j',
    { timeout: 360_000 },
    async (args, left, advice) => {
      const { book, commands } = await makeBooks();
      const { wrong, unseen, trial } = await check(await leaseOfFiveSeconds(book), ...args, ...commands);
      expect([wrong, unseen]).toEqual([[], left]);
      expect(trial('handler-fails')?.because).toEqual(advice.map((each) => expect.stringMatching(each) as string));
    },
  );

  test('failed payouts that are a status and no row are not counted without $STATUS', async () => {
    const { book, ledger } = await makeBooks();
    const url = await withRouter({ onSuccess: book, onFailed: () => undefined });
    const checked = await check(url, '--strict', '--count', `grep -c "^$ID " ${ledger}`);
    expect(checked).toMatchObject({ ...right, unseen: ['failed', 'failed-duplicate', 'failed-burst', 'failed-lost'] });
    expect(checked.trial('failed')?.bookings).toBeUndefined();
  });
});

describe('what is wrong is found:', () => {
  /** Remembers an id, and books then: a failure in between loses the callback. JSON is read under any type. */
  function setFirst(book: Book, isValid = isWhole): Promise<string> {
    const seen = new Set<string>();
    return byHand(async (callback) => {
      if (!isValid(callback)) return 400;
      if (seen.has(callback.data.id)) return undefined;
      seen.add(callback.data.id);
      await book(callback);
      return undefined;
    });
  }

  test('an id that is remembered before it is booked, with --break only', async () => {
    const { book, count, commands } = await makeBooks();
    const url = await setFirst(book);
    const { code, trial } = await check(url, ...commands, '--settle', '3');
    expect([code, trial('handler-fails')?.because]).toEqual([1, ['It was acknowledged and never booked: it is lost.']]);
    expect(trial('wrong-content-type')?.verdict).toBe('right');
    const without = await run('check', '--to', await setFirst(book), ...count);
    expect([without.code, without.out.replace(/\s+/g, ' ')]).toEqual([
      0,
      expect.stringContaining('an id that is remembered first is acknowledged then, and lost'),
    ]);
    expect(without.out).not.toContain('✗');
  });

  test('a 200 that comes first, and a copy that is booked again', async () => {
    const { book, commands } = await makeBooks();
    const url = await byHand((callback) => {
      void pause(300)
        .then(() => book(callback))
        .catch(() => undefined);
      return Promise.resolve(200);
    });
    const { code, wrong, trial } = await check(url, ...commands, '--settle', '3');
    expect(code).toBe(1);
    expect(wrong).toEqual(expect.arrayContaining(['duplicate', 'burst', 'response-lost', 'handler-fails']));
    expect(wrong).not.toContain('success');
    expect(trial('success')?.notes).toEqual([expect.stringContaining('before it was booked')]);
    expect(trial('burst')?.because).toEqual(['One payout was booked 10 times.']);
  });

  test('a route that books what is no callback', async () => {
    const { book, commands } = await makeBooks();
    const url = await setFirst(book, () => true);
    const { code, less, trial } = await check(url, ...commands, '--settle', '3');
    expect([code, less.includes('undocumented')]).toEqual([1, true]);
    expect(trial('wrong-content-type')).toMatchObject({ verdict: 'right', bookings: 1 });
  });

  test('a forged callback that is believed', async () => {
    const { book, count } = await makeBooks();
    const url = await withRouter({ onSuccess: book, onFailed: book });
    expect(await check(url, '--forged', url, ...count)).toMatchObject({ code: 1, wrong: ['forged'] });
  });

  test('what is stricter than documented, with --strict only', async () => {
    const { book } = await makeBooks();
    const url = await setFirst(book);
    const ended = await run('check', '--to', url);
    expect([ended.code, ended.out]).toEqual([0, expect.stringContaining('! flip')]);
    expect((await check(url, '--strict')).code).toBe(1);
  });
});

describe('it does not judge', () => {
  test.each([
    ['exit 3', 'The command of --break did not end with 0.'],
    ['true', 'It was booked while --break was in force: --break did not break it.'],
  ])('what `%s` as --break did not break', async (command, because) => {
    const { book, count } = await makeBooks();
    const url = await withRouter({ onSuccess: book, onFailed: book });
    const { code, unseen, trial } = await check(url, ...count, '--break', command, '--mend', 'true');
    expect([code, unseen, trial('handler-fails')?.because]).toEqual([0, ['handler-fails'], [because]]);
  });

  test.each<[status: number, first: string, option: string]>([
    [401, '401 means that the sender was not believed: give', 'in --to, --header, or a transfer-callbacks.config.mjs'],
    [404, 'The endpoint found nothing at this path', 'If your app must know the payout, give --prepare.'],
    [500, 'Your app failed, or something before it.', 'If your app asks the service, give --port'],
  ])(
    'an endpoint that refuses the first callback with %i, and says first what to do',
    async (status, first, option) => {
      const url = await serveBodies(() => status);
      const { code, out } = await run('check', '--to', url);
      expect(code).toBe(2);
      expect(out).toMatch(
        /\n◌ success .*\n(?: {4}\S.*\n)+\n18 rows were not played, because the first callback was refused\.\n$/,
      );
      const words = out.replace(/\s+/g, ' ');
      expect(words).toContain(`acknowledges it 4 × ${status} ${first}`);
      expect(words).toContain(option);

      const inJson = await check(url);
      expect([inJson.code, inJson.unseen.length]).toEqual([2, 19]);
      expect(inJson.trial('success')?.responses).toEqual(Array(4).fill(String(status)));
      expect(inJson.result?.missing).toContain(
        `The first callback was refused, so that nothing could be seen. ${first}`,
      );
    },
  );

  test('a count that counts everything, or nothing', async () => {
    const { book } = await makeBooks();
    const url = await withRouter({ onSuccess: book, onFailed: book });
    const all = await run('check', '--to', url, '--count', 'echo 7');
    expect([all.code, all.err]).toEqual([2, expect.stringContaining('to print 0 before the first callback, got 7')]);
    const count = (command: string) => run('check', '--to', url, '--count', command, '--settle', '1');
    const nothing = await count('grep -c $ID /dev/null');
    expect([nothing.code, nothing.err]).toEqual([2, expect.stringContaining('Nothing was counted for 1 s')]);
    const word = ', and with SUCCESS as $STATUS,';
    expect([nothing.err, (await count('grep -c $STATUS /dev/null')).err]).toEqual([
      expect.not.stringContaining(word),
      expect.stringContaining(word),
    ]);
  });
});

test('what was broken is mended after Ctrl+C', async () => {
  const { book, count, folder } = await makeBooks();
  const url = await withRouter({ onSuccess: book, onFailed: book });
  const [broken, log] = [join(folder, 'broken'), join(folder, 'log')];
  const commands = ['--break', `touch ${broken} && sleep 2 && echo broke >> ${log}`, '--mend', `echo $ID >> ${log}`];
  const { child, ended } = start(['check', '--to', url, ...count, ...commands]);
  await expect.poll(() => existsSync(broken), { timeout: 60_000 }).toBe(true);
  child.kill('SIGINT');
  expect((await ended).code).toBe(2);
  // A --break that went on would undo the --mend.
  expect(await readFile(log, 'utf8')).toMatch(/^broke\ncheck-handler-fails-\S+\n$/);
});

test('a --mend that fails ends the check with 2, also if it succeeds at the end', async () => {
  const { book, count, folder } = await makeBooks();
  const url = await withRouter({ onSuccess: book, onFailed: book });
  const end = (mend: string) => run('check', '--to', url, ...count, ...only(), '--break', 'exit 0', '--mend', mend);
  expect(await end('exit 1')).toMatchObject({ code: 2, err: expect.stringContaining('--mend failed') as string });
  const tried = join(folder, 'tried');
  expect(await end(`test -e ${tried} || ! touch ${tried}`)).toMatchObject({ code: 2, err: '' });
});
