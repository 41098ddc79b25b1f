import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { freePort } from '../support/port.js';
import { startRedis } from '../support/redis.js';
import { root } from './pages.js';
import { run, urlOf } from './run-example.js';

const redisUrl = (): Promise<string> => urlOf(startRedis);

describe('demo.ts', () => {
  const rows = [
    '✓ A success            200            paid 15,000      processed',
    '✓ A failure            200            refunded 900     processed',
    '✓ A bank account       200            wired 250,000    processed',
    '✓ Handler fails once   500, 200       error, paid 900  handler_failed, processed',
    '✓ Handler wants later  503, 200       later, paid 900  retry_later, processed',
    '✓ Ten copies together  10 × 200       paid 900         processed, 9 × duplicate',
    '✓ Process killed       none, 200      died, paid 900   processed',
    '✓ Two attempts lost    2 × lost, 200  paid 900         processed',
    '✓ JSON cut short       400, 200       paid 900         invalid, processed',
    '✓ A contradiction      200, 4 × 422   refunded 900     processed, 4 × conflict',
    '✓ A forgery            4 × 401        nothing          4 × unauthorized',
    '✓ No callback          nothing        paid 900         processed',
    '✓ Reconciled first     200            paid 900         processed, duplicate',
  ];
  const rowsOf = (output: string): string[] => output.split('\n').filter((line) => /^[✓✗]/.test(line));

  it('demo.ts shows on the memory store that each delivery ends as designed', async () => {
    const { exitCode, output } = run('demo.ts');

    expect([await exitCode, rowsOf(output())]).toEqual([0, rows]);
    expect(output()).toContain('in memory');
    expect(output()).toMatch(
      /Attempts {2}Handled once {2}Twice {2}Never\n *Transfers +12 +30 +12 +0 +0\n *Forgeries +1 +4 +0 +0 +1\n/,
    );
    expect(output()).toContain('docs/console.md');
  });

  it('demo.ts --open shows the same transfers in the console until Ctrl+C', async () => {
    const { exitCode, output, said, send } = run('demo.ts --open', { PATH: '/nowhere' });
    const [, url = ''] = await said(/In the browser, until Ctrl\+C: (http:\S+)/);
    await said(/Open the address by hand/);
    const stream = await fetch(`${url}events`);
    for await (const chunk of stream.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      expect(chunk).toContain('no callback is sent');
      break;
    }
    send('SIGINT');
    expect([await exitCode, rowsOf(output())]).toEqual([0, rows]);
  });

  it('demo.ts shows the same on Redis in repeated runs', async () => {
    const REDIS_URL = await redisUrl();
    for (const time of ['first', 'second']) {
      const { exitCode, output } = run('demo.ts', { REDIS_URL });

      expect([await exitCode, rowsOf(output())], time).toEqual([0, rows]);
      expect(output(), time).toContain('in Redis');
    }
  });

  it('the output of demo.ts fits into 80 columns and has no colours without a terminal', async () => {
    const { exitCode, output } = run('demo.ts');

    await exitCode;
    expect(
      output()
        .split('\n')
        .filter((line) => line.length > 80),
    ).toEqual([]);
    expect(output()).not.toContain('\u001B');
  });

  it('demo.ts exits with 1 when REDIS_URL leads to no Redis', async () => {
    const { exitCode, output } = run('demo.ts', { REDIS_URL: `redis://127.0.0.1:${await freePort()}` });

    expect(await exitCode).toBe(1);
    expect(output()).toContain('REDIS_URL leads to no Redis');
    expect(output()).toContain('ECONNREFUSED');
  });

  it.each([
    {
      fault: 'the store forgets everything',
      file: 'src/stores/memory.ts',
      plant: () => `export function memoryStore() {
        const lease = { renew: async () => true, settle: async () => ({ overlapped: false }), release: async () => {} };
        return { claim: async () => ({ state: 'claimed', lease }) };
      }`,
      // Of ten copies those are duplicates that arrive while the first is handled; on a busy machine one may be later.
      failures: [2, 3],
      row: 12,
      shown: '✗ Reconciled first     200            2 × paid 900     2 × processed',
    },
    {
      fault: 'a failed handler is acknowledged',
      file: 'src/http/responses.ts',
      plant: (text: string) => text.replace('status: 500', 'status: 200'),
      failures: [1],
      row: 3,
      shown: '✗ Handler fails once   200            error            handler_failed',
    },
    {
      fault: 'every sender is believed',
      file: 'src/http/verifiers.ts',
      plant: (text: string) => text.replace('return matches(readLastSegment(request))', 'return true'),
      failures: [1],
      row: 10,
      shown: '✗ A forgery            200            refunded 15,000  processed',
    },
  ])('demo.ts exits with 1 and prints what was expected when $fault', async ({ file, plant, failures, row, shown }) => {
    const copy = await mkdtemp(join(tmpdir(), 'transfer-callbacks-demo-'));
    onTestFinished(() => rm(copy, { recursive: true }));
    for (const part of ['package.json', 'tsconfig.json', 'src', 'examples']) {
      await cp(join(root, part), join(copy, part), { recursive: true });
    }
    await symlink(join(root, 'node_modules'), join(copy, 'node_modules'));
    const before = await readFile(join(copy, file), 'utf8');
    const after = plant(before);
    expect(after).not.toBe(before);
    await writeFile(join(copy, file), after);

    const { exitCode, output } = run('demo.ts', {}, copy);

    expect(await exitCode).toBe(1);
    const expected = `    expected           ${rows[row]?.slice(23) ?? ''}`;
    expect(output()).toContain(`${shown}\n${expected}\n`);
    const failed = rowsOf(output()).filter((line) => line.startsWith('✗')).length;
    expect(failures).toContain(failed);
    expect(output()).toContain(`${failed} of 13 are not as designed.`);
  });
});
