import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { transferScenarios } from 'transfer-sandbox';
import { runOnApp, runSandboxInProcess as run } from '../../../test/cli/in-process.js';
import { longestLine, root, startSandboxCli as start } from '../../../test/cli/support.js';

test('--version prints the version of the package', async () => {
  const { version } = JSON.parse(readFileSync(`${root}/sandbox/package.json`, 'utf8')) as { version: string };
  expect(await run('--version')).toEqual({ code: 0, out: `${version}\n`, err: '' });
});

test.each(['check', 'sandbox', 'trigger'])('help on %s is in 80 columns', async (name) => {
  const { code, out, err } = await run('help', name);
  expect([code, err]).toEqual([0, '']);
  expect(out).toContain(`Usage: transfer-sandbox ${name} `);
  expect(longestLine(out)).toBeLessThanOrEqual(80);
});

test.each(['sandbox', 'trigger'])('help on %s lists every scenario', async (name) => {
  const { out } = await run('help', name);
  for (const scenario of transferScenarios) expect(out).toContain(`  ${scenario.name} `);
});

test('without a command the sandbox runs', async () => {
  const { child, said, ended } = start(['--port', '0']);
  await expect.poll(() => said.out).toContain('Base URL');
  child.kill('SIGINT');
  expect((await ended).code).toBe(0);
  expect((await run('--frob')).err).toMatch(/^transfer-sandbox: Unknown option '--frob'/);
});

const to = ['--to', 'http://127.0.0.1:1/'];
test.each<[string, string[]]>([
  ['Unknown command: got "frob"; known are check, sandbox, trigger.', ['frob']],
  ["Unknown option '--too'. Did you mean `--to`?", ['trigger', 'failed', '--too', 'http://127.0.0.1:1']],
  ['Unexpected argument: got "frob".', ['sandbox', 'frob']],
  ['Expected --open or --no-console, not both.', ['sandbox', '--open', '--no-console']],
  ['Expected --port to be a number, got "x".', ['sandbox', '--port', 'x']],
  ['Expected --port to be a whole number from 0 to 65535, got 70000.', ['sandbox', '--port', '70000']],
  ['Expected a value for --port; one that begins with a dash is given as --port=-1.', ['sandbox', '--port', '-1']],
  ['Expected --host to be a host name or address, got "".', ['sandbox', '--host', '']],
  ['Expected --final-after to be a whole number', ['sandbox', '--final-after', '1.5']],
  ['Expected --callback-url to be a URL on this machine', ['sandbox', '--callback-url', 'http://example.com']],
  ['Expected --speed once, got it twice.', ['sandbox', '--speed', '1', '--speed', '2']],
  ['Expected a scenario, such as success: transfer-sandbox trigger success --to URL.', ['trigger', ...to]],
  [
    'Expected --to to be a URL of http or https: begin it with http://.',
    ['trigger', 'failed', '--to=localhost:3000/the-secret'],
  ],
  ['Expected <scenario> to be one of success', ['trigger', 'frob', ...to]],
  ['Unexpected argument: got a string of 18 characters. Write --to before the URL.', ['check', 'http://127.0.0.1:9']],
  ['Unexpected argument: got "flip".', ['trigger', 'failed', 'flip', ...to]],
  ['Unexpected argument: got "failed".', ['trigger', 'failed', '--data', 'package.json', ...to]],
  ['Expected --data to name a file that can be read, got ENOENT', ['trigger', '--data', 'no-file', ...to]],
  ['Expected --service beside --success.', ['check', '--success', 's.json', ...to]],
  ['Expected --service beside --success and --failed.', ['trigger', 'failed', '--failed', 'f.json', ...to]],
  [
    'Expected --data, or --success and --failed, not both.',
    ['trigger', '--data', 'a.json', '--service', 'a.mjs', '--success', 's.json', ...to],
  ],
  ["Option '--to <value>' argument missing.", ['trigger', 'failed', '--to']],
  ['Expected --external-id to be a string of at least one character.', ['trigger', 'burst', ...to, '--external-id=']],
  ['Expected --to to be a URL on this machine, or --allow-other-hosts', ['trigger', 'failed', '--to=http://e.com']],
  ['Expected --header to have a name and a colon.', ['trigger', 'failed', ...to, '--header', 'the-secret']],
  [
    'Expected the same header once in --header, got it twice.',
    ['trigger', 'failed', ...to, '--header=A: 1', '--header=a: 2'],
  ],
  ['Expected --header to be without Host, Connection', ['trigger', 'failed', ...to, '--header=Content-Type: a/b']],
  [
    'Expected --to URL, the callback endpoint, such as --to http://localhost:3000/callbacks, or a callbackUrl exported',
    ['trigger', 'failed'],
  ],
  ['Expected --to or --config, not both.', ['trigger', 'failed', ...to, '--config', 'package.json']],
  ['Expected --config to name a file that exists.', ['sandbox', '--config', 'the-secret']],
])('wrong arguments are named in one line, with exit code 2: %s', async (message, args) => {
  const { code, out, err } = await run(...args);
  expect(err).toContain(`transfer-sandbox: ${message}`);
  expect(err.trimEnd().split('\n')).toHaveLength(1);
  expect(err).not.toMatch(/the-secret/);
  expect([code, out]).toEqual([2, '']);
});

const escape = '\u001b[';
const flip = ['trigger', 'success', '--to', 'http://127.0.0.1:1/', '--speed', '100000'];

test.each<[string, boolean, Record<string, string>, boolean]>([
  ['are not in a pipe', false, {}, false],
  ['are in a pipe with FORCE_COLOR', false, { FORCE_COLOR: '1' }, true],
  ['are on a terminal', true, {}, true],
  ['are not on a terminal with NO_COLOR', true, { NO_COLOR: '1' }, false],
  ['are not on a terminal with TERM=dumb', true, { TERM: 'dumb' }, false],
])('colours %s', async (_when, terminal, env, coloured) => {
  const { code, out } = await runOnApp(flip, { terminal, env }, run);
  expect(code).toBe(1);
  expect(out).toContain('Not passed.');
  expect(out.includes(escape)).toBe(coloured);
});
