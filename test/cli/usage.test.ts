import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { describe, expect, inject, test, vi } from 'vitest';
import { transferScenarios } from 'transfer-callbacks/sandbox';
import { longestLine, root, run, start } from './support.js';

// Each command is a process of its own, which takes seconds on a busy machine.
vi.setConfig({ testTimeout: 120_000 });

test.each(['--version', '-v'])('%s prints the version of the package', async (option) => {
  const { version } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as { version: string };
  expect(await run(option)).toEqual({ code: 0, out: `${version}\n`, err: '' });
});

test('help names every command, however it is asked for', async () => {
  const ways = await Promise.all([run(), run('help'), run('--help'), run('-h')]);
  for (const { code, out, err } of ways) {
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(/\n {2}sandbox .+\n {2}trigger .+\n {2}reconcile .+\n {2}inspect .+\n {2}resend /);
    expect(out).toBe(ways[0].out);
  }
});

const commands = ['sandbox', 'trigger', 'reconcile', 'inspect', 'resend'];

test.each(commands)('help on %s is the same in every form, in 80 columns', async (name) => {
  const ways = await Promise.all([run('help', name), run(name, '--help'), run(name, '-h')]);
  for (const { code, out, err } of ways) {
    expect([code, err]).toEqual([0, '']);
    expect(out).toContain(`Usage: transfer-callbacks ${name} `);
    expect(out).toBe(ways[0].out);
    expect(longestLine(out)).toBeLessThanOrEqual(80);
    for (const scenario of ['sandbox', 'trigger'].includes(name) ? transferScenarios : [])
      expect(out).toContain(`  ${scenario.name} `);
  }
});

describe('wrong arguments are named in one line, with exit code 2:', () => {
  const to = ['--to', 'http://127.0.0.1:1/'];
  test.each<[string, string[]]>([
    ['Unknown command "frob"; known are sandbox, trigger, reconcile, inspect, resend, demo.', ['frob']],
    ['Unknown command "frob"', ['help', 'frob']],
    ["Unknown option '--frob'.", ['sandbox', '--frob']],
    ['Unexpected argument "frob".', ['sandbox', 'frob']],
    ['Unexpected argument "frob".', ['reconcile', 'frob']],
    ['Unexpected argument "frob".', ['demo', 'frob']],
    ['Expected --open or --no-console, not both.', ['sandbox', '--open', '--no-console']],
    ['Expected --port to be a number, got "x".', ['sandbox', '--port', 'x']],
    ['Expected --port to be a whole number from 0 to 65535, got 70000.', ['sandbox', '--port', '70000']],
    ['Expected a value for --port; one that begins with a dash is given as --port=-1.', ['sandbox', '--port', '-1']],
    ['Expected --port to be a whole number from 0 to 65535, got -1.', ['sandbox', '--port=-1']],
    ['Expected --host to be an address, got "".', ['sandbox', '--host', '']],
    ['Expected --api-key to be visible ASCII characters', ['sandbox', '--api-key', 'a b']],
    ['Expected --final-after to be a whole number', ['sandbox', '--final-after', '1.5']],
    ['Expected --callback-url to be a URL on this machine', ['sandbox', '--callback-url', 'http://example.com']],
    ['Expected --scenario to be one of success', ['sandbox', '--scenario', 'frob']],
    ['Expected --seed once, got it twice.', ['sandbox', '--seed', '1', '--seed', '2']],
    ['Expected a scenario', ['trigger', ...to]],
    ['Expected <scenario> to be one of success', ['trigger', 'frob', ...to]],
    ['Unexpected argument "flip".', ['trigger', 'failed', 'flip', ...to]],
    ['Expected --to URL, the callback endpoint.', ['trigger', 'failed']],
    ["Option '--to <value>' argument missing.", ['trigger', 'failed', '--to']],
    ['Expected --to once, got it twice.', ['trigger', 'failed', ...to, ...to]],
    ['Expected --external-id to be a string of at least one character.', ['trigger', 'burst', ...to, '--external-id=']],
    ['Expected --to to be a URL on this machine, or --allow-other-hosts', ['trigger', 'failed', '--to=http://e.com']],
    ["Expected --header to be 'Name: value'.", ['trigger', 'failed', ...to, '--header', 'the-secret']],
    ['Expected the header a once, got it twice.', ['trigger', 'failed', ...to, '--header=A: 1', '--header=a: 2']],
    ['Expected --header to be without Host, Connection', ['trigger', 'failed', ...to, '--header=Content-Type: a/b']],
    ['Expected --header to be a string that a header can carry', ['trigger', 'failed', ...to, '--header=A: \u{1f600}']],
    ['Expected --url-token-env to name an environment variable', ['trigger', 'failed', ...to, '--url-token-env=NONE']],
    ['Expected --callback-url beside --url-token-env.', ['sandbox', '--url-token-env', 'PATH']],
    ['Expected SHORT to be', ['trigger', 'failed', ...to, '--transfer-token-env', 'SHORT']],
    [
      'Expected --transfer-token-env or --url-token-env, not both',
      ['trigger', 'failed', ...to, '--transfer-token-env=A', '--url-token-env=B'],
    ],
    ['Expected TRANSFER_SERVICE_URL, TRANSFER_API_KEY and TRANSFER_API_SECRET in the environment.', ['reconcile']],
    ['Expected an id: transfer-callbacks inspect <id or externalId>.', ['inspect']],
    ['Expected an id', ['inspect', '']],
    ['Unexpected argument "b".', ['inspect', 'a', 'b']],
    ['Expected TRANSFER_SERVICE_URL, REDIS_URL or DATABASE_URL in the environment, or an option.', ['inspect', 'a']],
    ['Expected TRANSFER_API_KEY and TRANSFER_API_SECRET in', ['inspect', 'a', '--service', 'http://127.0.0.1:1']],
    ['Expected --redis to be a URL of redis:// or rediss://.', ['inspect', 'a', '--redis', 'http://the-secret@e.com']],
    ['Expected --postgres to be a URL of postgres://.', ['inspect', 'a', '--postgres', 'the-secret']],
    ['Expected --redis to be without a password', ['inspect', 'a', '--redis', 'redis://:the-secret@127.0.0.1']],
    ['Expected --postgres to be without a password', ['inspect', 'a', '--postgres', 'postgres://a:the-secret@e.com']],
    ['Expected --store redis or --store postgres', ['inspect', 'a', '--redis=redis://a', '--postgres=postgres://a']],
    ['Expected --store to be redis or postgres, got "sql".', ['inspect', 'a', '--store', 'sql']],
    ['Expected --redis or REDIS_URL to name the store.', ['inspect', 'a', '--store', 'redis']],
    ['Expected --prefix with a Redis store only.', ['inspect', 'a', '--postgres=postgres://a', '--prefix', 'b']],
    ['Expected --table and --schema with a PostgreSQL', ['inspect', 'a', '--redis=redis://a', '--schema', 'b']],
    ['Expected --table to be a name of 1 to 52 bytes', ['inspect', 'a', '--postgres=postgres://a', '--table=']],
    ['Expected an id: transfer-callbacks resend <id or externalId> --to URL.', ['resend', ...to]],
    ['Expected --to URL, the callback endpoint.', ['resend', 'a']],
    ['Unexpected argument "b".', ['resend', 'a', 'b', ...to]],
    ['Expected --to to be a URL of https, or one on this machine.', ['resend', 'a', '--to', 'http://the-secret.com']],
    ['Expected --to to be a URL of http or https.', ['resend', 'a', '--to', 'ftp://the-secret.com']],
    ['Expected --to to be a URL.', ['resend', 'a', '--to', 'the-secret']],
    ["Expected --header to be 'Name: value'.", ['resend', 'a', ...to, '--header', 'the-secret']],
    ['Expected --header to be without Host, Connection', ['resend', 'a', ...to, '--header=Host: e.com']],
    ['Expected --url-token-env to name an environment', ['resend', 'a', ...to, '--url-token-env=NONE']],
    ['Expected TRANSFER_SERVICE_URL, TRANSFER_API_KEY and', ['resend', 'a', ...to]],
    ['Expected --retention to be a number, got "b".', ['resend', 'a', ...to, '--retention', 'b']],
    ['Expected --retention to be a whole number from 1', ['inspect', 'a', '--redis=redis://a', '--retention=0']],
  ])('%s', async (message, args) => {
    const { code, out, err } = await start(args, { env: { SHORT: 'short-one' } }).ended;
    expect(err).toContain(`transfer-callbacks: ${message}`);
    expect(err.trimEnd().split('\n')).toHaveLength(1);
    expect(err).not.toMatch(/the-secret|short-one/);
    expect([code, out]).toEqual([2, '']);
  });

  test('a service in the environment that is no URL', async () => {
    const env = { TRANSFER_SERVICE_URL: 'nowhere', TRANSFER_API_KEY: 'k', TRANSFER_API_SECRET: 's' };
    const { code, err } = await start(['reconcile'], { env }).ended;
    expect([code, err]).toEqual([
      2,
      expect.stringContaining('Expected TRANSFER_SERVICE_URL to be an http or https URL'),
    ]);
  });
});

test('output that cannot be written is exit code 1, with the reason', async () => {
  const command = `exec "${process.execPath}" "${inject('cli')}" --version >/dev/full`;
  const full = spawn('sh', ['-c', command], { cwd: root });
  const [code] = (await once(full, 'close')) as [number];
  expect(code).toBe(process.platform === 'linux' ? 1 : code);
});

describe('colours', () => {
  const escape = '\u001b[';
  const flip = ['trigger', 'success', '--to', 'http://127.0.0.1:1/', '--speed', '100000'];

  test.each<[string, boolean, Record<string, string>, boolean]>([
    ['are not in a pipe', false, {}, false],
    ['are in a pipe with FORCE_COLOR', false, { FORCE_COLOR: '1' }, true],
    ['are on a terminal', true, {}, true],
    ['are not on a terminal with NO_COLOR', true, { NO_COLOR: '1' }, false],
    ['are not on a terminal with TERM=dumb', true, { TERM: 'dumb' }, false],
  ])('%s', async (_when, terminal, env, coloured) => {
    const { out } = await start(flip, { terminal, env }).ended;
    expect(out).toContain('Not passed.');
    expect(out.includes(escape)).toBe(coloured);
  });
});
