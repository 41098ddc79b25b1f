import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { transferScenarios } from 'transfer-callbacks/sandbox';
import { startMerchant } from './support.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

function start(args: readonly string[]) {
  const child = spawn(process.execPath, ['--import', 'tsx', 'src/cli.ts', ...args], { cwd: root });
  onTestFinished(() => void child.kill('SIGKILL'));
  const said = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said.out += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said.err += text));
  const ended = once(child, 'close').then(([code]: unknown[]) => ({ code, ...said }));
  return { child, said, ended };
}

const run = (...args: string[]) => start(args).ended;

const objects = (out: string): unknown[] =>
  out
    .trim()
    .split('\n')
    .map((each) => JSON.parse(each) as unknown);

test('--version is the version of the package', async () => {
  const { version } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as { version: string };
  expect(await run('--version')).toEqual({ code: 0, out: `${version}\n`, err: '' });
});

test('help names the commands, and of each what it takes, with every scenario', async () => {
  const [main, bare, sandbox, trigger] = await Promise.all([
    run('--help'),
    run(),
    run('sandbox', '--help'),
    run('trigger', '--help'),
  ]);
  expect([main.code, bare.code, sandbox.code, trigger.code]).toEqual([0, 0, 0, 0]);
  expect(bare.out).toBe(main.out);
  expect(main.out).toMatch(/sandbox[^]+trigger/);
  for (const { name } of transferScenarios) {
    expect(sandbox.out).toContain(`  ${name} `);
    expect(trigger.out).toContain(`  ${name} `);
  }
});

describe('wrong arguments are named in one line, with exit code 2:', () => {
  const to = ['--to', 'http://127.0.0.1:1/'];
  test.each<[string, string[]]>([
    ['Unknown command "frob"; known are sandbox and trigger.', ['frob']],
    ["Unknown option '--frob'.", ['sandbox', '--frob']],
    ['Unexpected argument "frob".', ['sandbox', 'frob']],
    ['Expected --port to be a number, got "x".', ['sandbox', '--port', 'x']],
    ['Expected --port to be a whole number from 0 to 65535, got 70000.', ['sandbox', '--port', '70000']],
    ['Expected --final-after to be a whole number', ['sandbox', '--final-after', '1.5']],
    ['Expected --callback-url to be a URL on this machine', ['sandbox', '--callback-url', 'http://example.com']],
    ['Expected --scenario to be one of success', ['sandbox', '--scenario', 'frob']],
    ['Expected a scenario', ['trigger', ...to]],
    ['Expected <scenario> to be one of success', ['trigger', 'frob', ...to]],
    ['Unexpected argument "flip".', ['trigger', 'failed', 'flip', ...to]],
    ['Expected --to URL, the callback endpoint.', ['trigger', 'failed']],
    ["Option '--to <value>' argument missing.", ['trigger', 'failed', '--to']],
    [
      'Expected --to to be a URL on this machine, or --allow-other-hosts',
      ['trigger', 'failed', '--to', 'http://e.com'],
    ],
  ])('%s', async (message, args) => {
    const { code, out, err } = await run(...args);
    expect(err).toContain(`transfer-callbacks: ${message}`);
    expect(err.trimEnd().split('\n')).toHaveLength(1);
    expect([code, out]).toEqual([2, '']);
  });
});

describe('trigger', () => {
  test('plays a transfer, prints its attempts, and ends with 0 when it was acknowledged', async () => {
    const { url, bodies } = await startMerchant([503]);
    const { code, out, err } = await run('trigger', 'failed', '--to', url, '--amount', '7', '--external-id', 'burst-1');
    expect([code, err]).toEqual([0, '']);
    const [first = '', second = '', last] = out.split('\n');
    expect(first).toMatch(/^ +0\.0 s {2}burst-1 {2}attempt 1 {2}503$/);
    expect(second).toMatch(/^ +\d+\.\d s {2}burst-1 {2}attempt 2 {2}200$/);
    expect(last).toBe('Acknowledged.');
    expect(JSON.parse(String(bodies()[0]))).toMatchObject({ event: 'transfer.failed', data: { amount: 7 } });
  });

  test('ends with 1 when nothing was acknowledged, and with --json says so in JSON', async () => {
    const { url } = await startMerchant([400, 400, 400, 400]);
    const { code, out } = await run('trigger', 'success', '--to', url, '--json', '--speed', '10000');
    expect(code).toBe(1);
    expect(objects(out)).toMatchObject([
      ...[1, 2, 3, 4].map((number) => ({ type: 'attempt', number, answer: { status: 400 } })),
      { type: 'result', scenario: 'success', attempts: 4, acknowledged: false },
    ]);
  });

  test('ends with 0 and a note when the scenario has no callback', async () => {
    const { code, out } = await run('trigger', 'no-callback', '--to', 'http://127.0.0.1:1/');
    expect([code, out]).toEqual([0, 'No callback was sent: in this scenario only a query tells the outcome.\n']);
  });

  test('ends with 2 when the sandbox does not take the transfer', async () => {
    const { code, out, err } = await run(
      'trigger',
      'success',
      '--to',
      'http://127.0.0.1:1/',
      '--external-id',
      'x'.repeat(110_000),
    );
    expect([code, out]).toEqual([2, '']);
    expect(err).toMatch(/^transfer-callbacks: [^\n]+\n$/);
  });

  test('ends with the code of its answer when nobody reads on, and with 1 when nobody can', async () => {
    const { url } = await startMerchant(Array<number>(8).fill(500));
    const { child, ended } = start(['trigger', 'success', '--to', url]);
    child.stdout.destroy();
    expect((await ended).code).toBe(1);
    const full = spawn('sh', ['-c', `exec "${process.execPath}" --import tsx src/cli.ts --version >/dev/full`], {
      cwd: root,
    });
    const [code] = (await once(full, 'close')) as [number];
    expect(code).toBe(process.platform === 'linux' ? 1 : code);
  });

  test('gives a transfer another id each time, unless it is told the seed', async () => {
    const { url, bodies } = await startMerchant();
    await run('trigger', 'success', '--to', url);
    await run('trigger', 'success', '--to', url);
    for (let count = 0; count < 2; count += 1) await run('trigger', 'success', '--to', url, '--seed', '5');
    const ids = bodies().map((body) => (JSON.parse(body) as { data: { id: string } }).data.id);
    expect(new Set(ids).size).toBe(3);
    expect(ids[2]).toBe(ids[3]);
  });
});

describe('sandbox', () => {
  test('prints where it is and every attempt, without colours in a pipe, and ends with 0 on SIGINT', async () => {
    const { url } = await startMerchant([500]);
    const { child, said, ended } = start(['sandbox', '--callback-url', url, '--speed', '1000', '--seed', '3']);
    await vi.waitFor(() => {
      expect(said.out).toMatch(/\n {2}curl .+\n\n/);
    }, 10_000);
    const [, baseUrl = ''] = /Base URL +(\S+)/.exec(said.out) ?? [];
    const answer = await fetch(`${baseUrl}/transactions/transfer`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'x-api-key': 'sandbox-key', 'x-api-secret': 'sandbox-secret' },
      body: JSON.stringify({ externalId: 'with\u001b[31mcolour' }),
    });
    expect(answer.status).toBe(201);
    await vi.waitFor(() => {
      expect(said.out).toContain('Z  with?[31mcolour  attempt 2  200\n');
    }, 10_000);
    child.kill('SIGINT');
    const { code, out, err } = await ended;
    expect([code, err]).toEqual([0, '']);
    expect(out).not.toContain('\u001b');
  });

  test('with --json prints one object per line, and ends with 0 on SIGTERM', async () => {
    const { child, said, ended } = start(['sandbox', '--json']);
    await vi.waitFor(() => {
      expect(said.out).toContain('\n');
    }, 10_000);
    child.kill('SIGTERM');
    const { code, out } = await ended;
    expect(code).toBe(0);
    expect(objects(out)).toMatchObject([{ type: 'started', apiKey: 'sandbox-key', apiSecret: 'sandbox-secret' }]);
  });

  test('says in one line why it cannot start, with exit code 1', async () => {
    const { url } = await startMerchant();
    const { code, err } = await run('sandbox', '--port', new URL(url).port);
    expect(code).toBe(1);
    expect(err).toMatch(/^transfer-callbacks: listen EADDRINUSE[^\n]+\n$/);
  });
});
