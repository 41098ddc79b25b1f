import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { describe, expect, inject, test } from 'vitest';
import { runInProcess as run } from './in-process.js';
import { longestLine, root } from './support.js';

test.each(['--version', '-v'])('%s prints the version of the package', async (option) => {
  const { version } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as { version: string };
  expect(await run(option)).toEqual({ code: 0, out: `${version}\n`, err: '' });
});

test('help names every command, however it is asked for', async () => {
  const ways = [await run(), await run('help'), await run('--help'), await run('-h')] as const;
  for (const { code, out, err } of ways) {
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(/\n {2}inspect .+\n {2}reconcile /);
    expect(out).toBe(ways[0].out);
  }
});

test.each(['inspect', 'reconcile'])('help on %s is in 80 columns', async (name) => {
  const { code, out, err } = await run('help', name);
  expect([code, err]).toEqual([0, '']);
  expect(out).toContain(`Usage: transfer-callbacks ${name} `);
  expect(longestLine(out)).toBeLessThanOrEqual(80);
});

test('help on a command is the same in every form', async () => {
  const help = await run('help', 'inspect');
  const others = [await run('inspect', '--help'), await run('inspect', '-h')];
  expect(others).toEqual([help, help]);
});

describe('wrong arguments are named in one line, with exit code 2:', () => {
  test.each<[string, string[]]>([
    ['Unknown command: got "frob"; known are inspect, reconcile.', ['frob']],
    ['Unknown command: got "insepct". Did you mean `inspect`?', ['insepct']],
    ['Unexpected argument: got "frob".', ['reconcile', 'frob']],
    ['Expected an id: transfer-callbacks inspect <id or externalId>.', ['inspect', '']],
    ['Unexpected argument: got "b".', ['inspect', 'a', 'b']],
    [
      "Unknown option '--redis'; known are --config, --json, --help.",
      ['inspect', 'a', '--redis', 'redis://:the-secret@127.0.0.1'],
    ],
  ])('%s', async (message, args) => {
    const { code, out, err } = await run(...args);
    expect(err).toContain(`transfer-callbacks: ${message}`);
    expect(err.trimEnd().split('\n')).toHaveLength(1);
    expect(err).not.toMatch(/the-secret/);
    expect([code, out]).toEqual([2, '']);
  });
});

test('output that cannot be written is exit code 1, with the reason', async () => {
  const command = `exec "${process.execPath}" "${inject('cli')}" --version >/dev/full`;
  const full = spawn('sh', ['-c', command], { cwd: root });
  const [code] = (await once(full, 'close')) as [number];
  expect(code).toBe(process.platform === 'linux' ? 1 : code);
});
