// What both commands make of the status that the service reports.
import { describe, expect, test } from 'vitest';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { startQueries } from '../client/support.js';
import { folderOf, inspect, reconcile, startReconcile, toConfig } from './app-support.js';
import { objects } from './support.js';

/** The folder of an app whose service gives every transfer this status. */
async function startSaying(status: string, handlers?: string): Promise<string> {
  const { baseUrl } = await startQueries((id) => [200, { data: { ...transferSucceeded({ id }).data, status } }]);
  return folderOf(await toConfig(`${crypto.randomUUID()}:`, baseUrl, handlers));
}

describe('the exit code', () => {
  const ago = (ms: number): string => new Date(Date.now() - ms).toISOString();
  const hourMs = 3_600_000;

  test('an open transfer that is young or of unknown age is no fault, and nothing is reported', async () => {
    const cwd = await startSaying('PENDING');
    const { code, out, err } = await reconcile(['a', `b\t${ago(23 * hourMs)}`], { cwd });
    expect([code, err]).toEqual([0, '']);
    expect(objects(out)).toMatchObject([
      { id: 'a', result: 'pending', status: 'PENDING' },
      { id: 'b', result: 'pending', status: 'PENDING' },
      { type: 'summary', pending: 2 },
    ]);
    expect((await inspect(['a'], { cwd })).code).toBe(0);
  });

  test('an open transfer whose status reads as final is exit code 1 and one sentence', async () => {
    const cwd = await startSaying('SUCCESSFUL');
    const { code, out, err } = await reconcile(['a', 'b'], { cwd });
    expect([code, err]).toEqual([1, expect.stringMatching(/^The service reports the status SUCCESSFUL\. [^\n]*\n$/)]);
    expect(objects(out)).toMatchObject([{ status: 'SUCCESSFUL' }, { status: 'SUCCESSFUL' }, { pending: 2 }]);
    const inspected = await inspect(['a'], { cwd });
    expect(inspected.code).toBe(1);
    expect(inspected.out.replaceAll(/\s+/g, ' ')).toContain(
      'The service reports the status SUCCESSFUL, which is not final',
    );
  });

  test('an open transfer that is older than a day is exit code 1', async () => {
    const cwd = await startSaying('PENDING');
    const { code, err } = await reconcile(['a', `b\t${ago(25 * hourMs)}`], { cwd });
    expect([code, err]).toEqual([1, expect.stringMatching(/^Transfers older than a day have the status PENDING\./)]);
    const wrong = await reconcile(['a\tyesterday'], { cwd });
    expect(wrong).toEqual({
      code: 2,
      out: '',
      err: 'transfer-callbacks: Expected a time after the tab, such as 2026-01-15T10:30:00Z, got "yesterday".\n',
    });
  });
});

test('a transfer that was created in the future is exit code 1, with its result and the reason', async () => {
  const cwd = await startSaying('PENDING');
  const soon = new Date(Date.now() + 2 * 3_600_000).toISOString();
  const message = expect.stringContaining(`to be in the past, got ${soon}: another time zone?`) as string;
  const { code, out, err } = await reconcile([`a\t${soon}`], { cwd });
  expect([code, err]).toEqual([1, '']);
  expect(objects(out)).toMatchObject([
    { id: 'a', result: 'pending', code: 'INVALID_ARGUMENT', message },
    { pending: 1 },
  ]);
});

describe('beside the progress line', () => {
  const reconcileLogging = async (log: string): Promise<string> => {
    const handlers = `onSuccess({ data }) { ${log} }, onFailed() {},`;
    const cwd = await startSaying('SUCCESS', handlers);
    const { code, err } = await startReconcile(['a', 'b', 'c'], { cwd, terminal: true }).ended;
    expect(code).toBe(0);
    expect(err).toMatch(/1 of 3: 1 processed, 2 not read\r/);
    return err;
  };

  test('a line that a handler logs past the streams of Node begins on a cleared line', async () => {
    const err = await reconcileLogging(`
      const pino = process.getBuiltinModule('node:module').createRequire(import.meta.url)('pino');
      pino(pino.destination({ sync: true })).info(data.id);`);
    const before = [...err.matchAll(/(.{4})\{"level"/gs)].map(([, text]) => text);
    expect(before).toHaveLength(3);
    for (const text of before) expect(text).toMatch(/(?:\n|\r\u001b\[K)$/);
  });

  // By default, pino writes in a thread of its own: on a busy machine its line follows the progress line.
  test('a line that is logged after the progress line begins in the first column', async () => {
    const err = await reconcileLogging(`
      const { write } = process.stderr;
      process.stderr.write = (text) => {
        write.call(process.stderr, text);
        if (/ of 3: /.test(text)) process.getBuiltinModule('node:fs').writeSync(2, 'late ' + data.id + '\\n');
        return true;
      };`);
    expect(err).toMatch(/2 not read\rlate a\n/);
  });
});
