import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { hmacSignature, transferToken, type TransferCallback, type Verifier } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { startMerchant, startReceiver } from '../service/support.js';
import { folderOf } from '../../../test/cli/app-support.js';
import { runOnApp, runSandboxInProcess as run } from '../../../test/cli/in-process.js';
import { longestLine, objects, startSandboxCli as start } from '../../../test/cli/support.js';
import type { TransferScenario } from '../../src/service/scenarios.js';

test.each<[TransferScenario, number, readonly number[], string]>([
  ['flip', 0, [], 'Passed, but ! After FAILED, SUCCESS was acknowledged for the same id: a payout may count'],
  ['flip', 0, [200, 422, 422, 422, 422], 'Passed. FAILED was acknowledged; the contradiction that followed it was'],
  ['malformed', 1, [], 'Not passed. JSON that was cut short was acknowledged.'],
  ['wrong-content-type', 0, [], 'Passed. JSON under text/plain was acknowledged: right if your app has read it.'],
  ['duplicate', 1, [200, 409], 'Not passed. The callback was acknowledged, but refused when it came again.'],
  ['failed', 1, [400, 400, 400, 400], 'Not passed. None of 4 attempts was acknowledged.'],
  ['no-callback', 0, [], 'Passed. No callback was sent: in this scenario only a query tells the final status.'],
])('the verdict of %s is exit code %i after %j, and one line shows why', async (scenario, code, statuses, line) => {
  const { url } = await startMerchant(statuses);
  const ended = await run('trigger', scenario, '--to', url, '--speed', '10000');
  expect([ended.code, ended.err]).toEqual([code, '']);
  expect(ended.out.trimEnd().split('\n').at(-1)).toContain(line);
  // A response that is as it should be, or acknowledges what it should not, needs no explanation.
  expect(ended.out.includes('Hint: ')).toBe(code === 1 && Number(statuses.at(-1)) >= 400);
});

test('the rows show event, amount, status, duration, reason and when the next attempt is planned', async () => {
  const { url, bodies } = await startMerchant((_received, count, response) => {
    if (count === 2) response.end('{"outcome":"processed"}');
    else response.writeHead(503).end('{"error":true,"statusCode":503,"message":"Not\\u001b[2Jnow","data":null}');
  });
  const { code, out, err } = await run(
    ...['trigger', 'failed', '--to', url, '--amount', '7', '--external-id', 'burst-1'],
  );
  expect([code, err]).toEqual([0, '']);
  expect(out.replace(/\d+ ms/g, 'N ms').split('\n')).toEqual([
    '   0 s  burst-1  transfer.failed  7 XAF  attempt 1',
    String.raw`        ← 503  N ms  Not\u{1b}[2Jnow  next in 30 s`,
    '  30 s  burst-1  transfer.failed  7 XAF  attempt 2',
    '        ← 200  N ms  processed',
    'Passed. The callback was acknowledged at attempt 2.',
    '',
  ]);
  expect((JSON.parse(String(bodies()[0])) as TransferCallback).data.amount).toBe(7);
});

test('the rows fit into 80 columns, with a reason that is too long on its own line', async () => {
  const message = 'The handler failed. '.repeat(9);
  const { url } = await startMerchant((_received, _count, response) => {
    response.writeHead(500).end(JSON.stringify({ error: true, statusCode: 500, message, data: null }));
  });
  const { out } = await run('trigger', 'success', '--to', url, '--external-id', 'x'.repeat(300));
  expect(longestLine(out)).toBe(80);
  expect(out).toMatch(/\n {8}← 500 {2}\d+ ms {2}next in 30 s\n {10}The handler failed\. .+…\n/);
});

test('the rows show the seconds of the schedule, whatever the speed', async () => {
  const { url } = await startMerchant([500, 500, 500, 500]);
  const { out } = await run('trigger', 'lost-attempts', '--to', url, '--speed', '20000');
  expect([...out.matchAll(/^ *(\d+) s {2}/gm)].map(([, seconds]) => Number(seconds))).toEqual([0, 30, 90, 210]);
  expect(out).toContain('← lost: part of the scenario  next in 30 s');
});

test('the rows with --json are one object each, with the result last', async () => {
  const { url } = await startMerchant([400, 400, 400, 400]);
  const { code, out } = await run('trigger', 'success', '--to', url, '--json', '--speed', '10000');
  expect(code).toBe(1);
  expect(objects(out)).toMatchObject([
    ...[1, 2, 3, 4].map((number) => ({ type: 'attempt', number, response: { status: 400 } })),
    { type: 'result', scenario: 'success', attempts: 4, acknowledged: false, passed: false },
  ]);
});

const triggerIn = (cwd: string, ...args: string[]) => runOnApp(['trigger', ...args], { cwd }, run);

const secret = 'the-secret-of-the-endpoint';
const toConfig = (url: string): string => `
  import { transferToken } from 'transfer-callbacks';
  const tokens = transferToken('${secret}');
  export const callbackUrl = (externalId) => tokens.urlFor('${url}', externalId);
  export const callbackHeaders = { 'X-Token': '${secret}', 'X-Other': 'a' };`;

test('a secured endpoint is that of the configuration without --to: its callbackUrl and its callbackHeaders, and --header beside', async () => {
  const tokens = transferToken(secret);
  const seen: unknown[] = [];
  const verify: Verifier = (request, callback) => {
    seen.push([request.headers['x-token'], request.headers['x-other']]);
    return tokens(request, callback);
  };
  const url = await startReceiver({ verify });
  const cwd = await folderOf(toConfig(url));
  await writeFile(join(cwd, 'callback.json'), JSON.stringify(transferSucceeded()));
  for (const what of [['success'], ['--data', 'callback.json'], ['success', '--json', '--header', 'x-other: b']]) {
    const { code, out, err } = await triggerIn(cwd, ...what);
    expect([code, err]).toEqual([0, '']);
    expect(out).not.toContain(secret);
  }
  expect(seen).toEqual([
    [secret, 'a'],
    [secret, 'a'],
    [secret, 'b'],
  ]);
});

test('a secured endpoint takes the signature of a function, over the bytes of each attempt', async () => {
  const secrets = 'the-secret-of-the-signature';
  const url = await startReceiver({ verify: hmacSignature({ header: 'x-signature', secrets }) });
  const cwd = await folderOf(`
    import { createHmac } from 'node:crypto';
    export const callbackUrl = '${url}';
    export const callbackHeaders = (body) => ({
      'X-Signature': createHmac('sha256', '${secrets}').update(body).digest('hex'),
    });`);
  await writeFile(join(cwd, 'callback.json'), JSON.stringify(transferSucceeded()));
  for (const what of [['burst'], ['--data', 'callback.json']]) {
    const { code, out, err } = await triggerIn(cwd, ...what);
    expect([code, err]).toEqual([0, '']);
    expect(out).toContain('processed');
  }
});

test('a secured endpoint of the configuration is on this machine, unless --allow-other-hosts is given', async () => {
  const elsewhere = 'http://merchant.invalid/';
  const fault = 'to be a URL on this machine, or --allow-other-hosts';
  const text = await folderOf(`export const callbackUrl = '${elsewhere}';`);
  await writeFile(join(text, 'callback.json'), '{}');
  const refused = await triggerIn(text, 'success');
  expect([refused.code, refused.out]).toEqual([2, '']);
  expect(refused.err).toContain(`Expected the callbackUrl of transfer-callbacks.config.mjs ${fault}`);
  const made = await folderOf(`export const callbackUrl = () => '${elsewhere}';`);
  await writeFile(join(made, 'callback.json'), '{}');
  for (const what of ['success', '--data=callback.json']) {
    const { code, out, err } = await triggerIn(made, what);
    expect([what, code, out]).toEqual([what, 2, '']);
    expect(err).toMatch(/callbackUrl.* on this machine, or --allow-other-hosts/);
  }
  const allowed = await triggerIn(made, '--data=callback.json', '--allow-other-hosts');
  expect([allowed.code, allowed.err]).toEqual([1, '']);
});

test('a secured endpoint that responds 401 is explained once', async () => {
  const url = await startReceiver({ verify: transferToken(secret) });
  const { code, out } = await run('trigger', 'success', '--to', url, '--speed', '10000');
  expect(code).toBe(1);
  expect(out.match(/← 401/g)).toHaveLength(4);
  expect(out.match(/Hint: 401 means that a verifier refused the sender/g)).toHaveLength(1);
});

test('trigger ends with 2 when the sandbox refuses the transfer', async () => {
  const { code, out, err } = await run(
    ...['trigger', 'success', '--to', 'http://127.0.0.1:1/', '--external-id', 'x'.repeat(110_000)],
  );
  expect([code, out]).toEqual([2, '']);
  expect(err).toMatch(/^transfer-sandbox: [^\n]+\n$/);
});

test('trigger ends with the code of its verdict when its reader has gone', async () => {
  const { url } = await startMerchant(Array<number>(8).fill(500));
  const { child, ended } = start(['trigger', 'success', '--to', url]);
  child.stdout.destroy();
  expect((await ended).code).toBe(1);
});

test('--data sends the bytes of a file once, and reports whether they were acknowledged', async () => {
  const url = await startReceiver();
  const folder = await mkdtemp(join(tmpdir(), 'transfer-callbacks-data-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const send = async (name: string, content: string, ...rest: string[]) => {
    await writeFile(join(folder, name), content);
    return run('trigger', '--data', join(folder, name), '--to', url, ...rest);
  };
  const pretty = JSON.stringify(transferSucceeded(), null, 2);
  const first = await send('callback.json', pretty);
  expect([first.code, first.err, first.out]).toEqual([0, '', expect.stringMatching(/← 200 .* processed/)]);
  const [attempt] = objects((await send('callback.json', pretty, '--json')).out);
  expect(attempt).toMatchObject({ type: 'attempt', body: pretty, response: { status: 200 }, reason: 'duplicate' });

  const changed = await send('changed.json', pretty.replace(/"amount": \d+/, '"amount": 1'));
  expect([changed.code, changed.out]).toEqual([1, expect.stringMatching(/← 422 [^]*never acknowledged/)]);
  const none = await send('none.json', '{"data":{"externalId":"a"}}');
  expect([none.code, none.out]).toEqual([1, expect.stringMatching(/\(no callback\)[^]*← 400 /)]);
});
