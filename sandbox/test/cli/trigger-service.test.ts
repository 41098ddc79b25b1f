// `trigger --service`: scenarios and files in the dialect of another service.
import { generateKeyPairSync } from 'node:crypto';
import { appendFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { transferCallbackSchema } from 'transfer-callbacks';
import { expect, test } from 'vitest';
import { objects, startSandboxCli as start } from '../../../test/cli/support.js';
import { readText } from '../../../test/docs/pages.js';
import { key, secrets, withService, writeService } from './check/defined-support.js';
import { makeBooks } from './check/support.js';
import { startMerchant } from '../service/support.js';

const publicKey = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }).toString();

const definition = (verify: string): string => `
  import { defineService, hmacSignature, publicKeySignature } from 'transfer-sandbox';
  export const service = defineService({
    read: ({ state, number, reference, cents }) => ({ state, id: number, externalId: reference, amount: cents }),
    states: { paid: 'SUCCESS', bounced: 'FAILED' },
    verify: ${verify},
  });`;

/** Writes what a user of a service of his own has. Resolves with the options of its samples, and of both ways to send. */
async function writeOwn(verify = `hmacSignature({ header: 'x-signature', secrets: '${key}' })`) {
  const { folder } = await makeBooks();
  const [service = '', success = '', failed = ''] = ['own.mjs', 's.json', 'f.json'].map((name) => join(folder, name));
  await writeFile(service, definition(verify));
  await writeFile(success, JSON.stringify({ state: 'paid', number: 7, reference: 'payout-17', cents: 1_500 }));
  await writeFile(failed, JSON.stringify({ state: 'bounced', number: 8, reference: 'payout-18', cents: 1_500 }));
  const samples = ['--service', service, '--success', success, '--failed', failed];
  const both = [
    ['success', ...samples],
    ['--data', success, '--service', service],
  ];
  return { samples, both };
}

const triggerWith = (env: Record<string, string>, ...args: string[]) =>
  start(['trigger', ...args, '--speed', '10000'], { env }).ended;
const trigger = (...args: string[]) => triggerWith(secrets, ...args);
/** For a service by its name, whose secret is in the environment. */
const triggerNamed = (...args: string[]) => triggerWith({ CALLBACK_SECRET: key }, ...args);

const played = ['success', 'failed', 'duplicate', 'burst', 'lost-attempts', 'response-lost', 'slow-sender', 'flip'];

test('a right endpoint of another service passes each scenario of what is sent, and books each transfer once', async () => {
  const { folder, book, ledger } = await makeBooks();
  const url = await withService('korapay', book);
  const service = await writeService('korapay', folder);
  for (const scenario of [...played, 'malformed']) {
    const { code, out, err } = await trigger(scenario, '--to', url, ...service);
    expect([scenario, code, err]).toEqual([scenario, 0, '']);
    expect(out).toMatch(/ {2}(?:success|failed) {2}150\.99 NGN {2}attempt [12]\n/);
  }
  const booked = (await readFile(ledger, 'utf8')).trim().split('\n').sort();
  expect(booked.map((line) => line.replace(/-[\da-f]{8}-[-\da-f]+ /, ' '))).toEqual(
    [...played, 'malformed']
      .map((scenario) => `trigger-${scenario} ${/^(?:failed|flip)$/.test(scenario) ? 'FAILED' : 'SUCCESS'}`)
      .sort(),
  );
});

test('the verdict is that of the definition, whatever the names of the fields are', async () => {
  const { samples } = await writeOwn();
  const { url, bodies, received } = await startMerchant();
  const flipped = await trigger('flip', '--to', url, ...samples);
  expect([flipped.code, flipped.out]).toEqual([0, expect.stringContaining('Passed, but ! After FAILED, SUCCESS was')]);
  expect(flipped.out).toMatch(/ {2}bounced {2}1500 {2}attempt 1\n[^]* {2}paid {2}1500 {2}attempt 1\n/);
  const cut = await trigger('malformed', '--to', url, ...samples);
  expect([cut.code, cut.out]).toEqual([1, expect.stringContaining('JSON that was cut short was acknowledged.')]);
  expect(cut.out).toContain('(no callback)');
  const [failed, paid] = bodies().map((body, index) => (index < 2 ? (JSON.parse(body) as object) : {}));
  expect(failed).toEqual({ ...paid, state: 'bounced' });
  expect(new Set(received.map(({ headers }) => headers['x-signature'])).size).toBe(3);
});

test('the samples of a named service are sent, signed with the secret of the environment', async () => {
  const { book, ledger } = await makeBooks();
  const url = await withService('korapay', book);
  const { code, out, err } = await triggerNamed('failed', '--to', url, '--service', 'korapay');
  expect([code, err]).toEqual([0, '']);
  expect(out).toMatch(/korapay[^]*not seen live/);
  expect(await readFile(ledger, 'utf8')).toMatch(/^trigger-failed-\S+ FAILED\n$/);
});

interface PaystackCallback {
  readonly data: { readonly id: number; readonly reference: string; readonly transfer_code: string };
}

test('--json prints each body with fresh ids, even if nothing listens', async () => {
  const printBodies = async (...service: string[]) => {
    const { out } = await triggerNamed('failed', '--to', 'http://127.0.0.1:1', '--json', ...service);
    return (objects(out) as { body?: string }[]).flatMap(({ body }) => body ?? []);
  };
  const [first = '', ...others] = await printBodies();
  expect(transferCallbackSchema.parse(JSON.parse(first)).event).toBe('transfer.failed');
  expect(others).toEqual([first, first, first]);

  const { failed } = JSON.parse(readText('examples/services/payloads/paystack.json')) as { failed: PaystackCallback };
  const [body = ''] = await printBodies('--service', 'paystack');
  const { id, reference, transfer_code: code } = (JSON.parse(body) as PaystackCallback).data;
  expect(JSON.parse(body)).toEqual({ ...failed, data: { ...failed.data, id, reference, transfer_code: code } });
  expect([id, reference]).not.toEqual([failed.data.id, failed.data.reference]);
});

test('a reversal follows its success, twice, where there is a sample of one', async () => {
  const { book, ledger } = await makeBooks();
  const play = (url: string, service: string) => triggerNamed('reversed', '--to', url, '--service', service);
  const url = await withService('paystack', book);
  const { code, out, err } = await play(url, 'paystack');
  expect([code, err, out]).toEqual([0, '', expect.stringContaining('The reversal was acknowledged, and its copy.')]);
  const booked = (await readFile(ledger, 'utf8')).trim().split('\n');
  expect(booked.map((line) => line.split(' ').at(-1))).toEqual(['SUCCESS', 'REVERSED']);
  const never = await play(url, 'korapay');
  expect([never.code, never.err]).toEqual([2, expect.stringContaining('No document that was read shows a reversal.')]);
  const refuses = await startMerchant(Array<number>(9).fill(400));
  expect((await play(refuses.url, 'paystack')).code).toBe(1);
});

test('a form is sent as a form, and cannot be cut short', async () => {
  const { folder, book } = await makeBooks();
  const url = `${await withService('cinetpay', book)}/${key}`;
  const service = await writeService('cinetpay', folder);
  const { code, out } = await trigger('duplicate', '--to', url, '--json', ...service);
  expect(code).toBe(0);
  const contentType = 'application/x-www-form-urlencoded';
  expect(objects(out)).toMatchObject([{ contentType }, { contentType, reason: 'duplicate' }, { passed: true }]);
  const refused = await trigger('malformed', '--to', url, ...service);
  expect([refused.code, refused.err]).toEqual([
    2,
    expect.stringMatching(/to be one of success.* flip, got "malformed"\./),
  ]);
});

test('--external-id is the own id, and numbers stay numbers', async () => {
  const { samples } = await writeOwn();
  const { url, bodies } = await startMerchant();
  const { code, out } = await trigger('success', '--to', url, '--json', '--external-id', 'payout-99', ...samples);
  const body = JSON.parse(String(bodies()[0])) as { number: unknown };
  expect(body).toEqual({ state: 'paid', number: expect.any(Number) as number, reference: 'payout-99', cents: 1_500 });
  expect([code, objects(out)[0]]).toEqual([
    0,
    expect.objectContaining({ externalId: 'payout-99', transferId: String(body.number) }),
  ]);
});

test('--data with --service sends the bytes of the file, signed', async () => {
  const { folder, book, ledger } = await makeBooks();
  const url = await withService('paystack', book);
  const service = (await writeService('paystack', folder)).slice(0, 2);
  const file = join(folder, 'paystack-reversed');
  await appendFile(file, '\n');
  const sent = await trigger('--data', file, '--to', url, ...service);
  expect([sent.code, sent.err]).toEqual([0, '']);
  expect(sent.out).toMatch(/payout-a-8841-00017 {2}transfer\.reversed {2}250000 NGN {2}attempt 1\n.*200/);
  expect(await readFile(ledger, 'utf8')).toBe('payout-a-8841-00017 REVERSED\n');
  await writeFile(file, '{"event":"transfer.gone"}');
  const refused = await trigger('--data', file, '--to', url, ...service);
  expect([refused.code, refused.out]).toEqual([1, expect.stringMatching(/\(no callback\)[^]*← 400 /)]);
});

const bySignature = `publicKeySignature({ header: 'x-signature', publicKeys: ${JSON.stringify(publicKey)} })`;

test('a service whose verifier cannot sign is refused, unless --header is given', async () => {
  const { both } = await writeOwn(bySignature);
  const { url, received } = await startMerchant();
  for (const args of both) {
    const { code, out, err } = await trigger('--to', url, ...args);
    expect([code, out, err]).toEqual([2, '', expect.stringContaining('Expected --header, or a configuration whose')]);
    expect((await trigger('--to', url, '--header', 'X-Signature: abc', ...args)).code).toBe(0);
  }
  expect(received.map(({ headers }) => headers['x-signature'])).toEqual(['abc', 'abc']);
});

test('a CALLBACK_SECRET of another kind is named, and not shown', async () => {
  const { both } = await writeOwn(bySignature);
  const env = { CALLBACK_SECRET: 'no-private-key' };
  const fault = expect.stringContaining('Expected CALLBACK_SECRET to be the private key') as string;
  for (const args of both) {
    const { code, out, err } = await triggerWith(env, '--to', 'http://127.0.0.1:9/', ...args);
    expect([code, out, err]).toEqual([2, '', fault]);
    expect(err).not.toContain('no-private-key');
  }
});

test.each<[string, readonly string[], string]>([
  ['a scenario of queries', ['query-lags'], 'Expected <scenario> with --service to be one of success, failed, '],
  ['a reversal that the definition does not have', ['reversed'], 'The definition has no REVERSED.'],
  ['an amount', ['success', '--amount', '5'], 'Expected --amount or --service, not both: a sample has its amount.'],
  ['a speed of 0', ['success', '--speed', '0'], 'Expected --speed to be a number above 0'],
])('%s is refused beside --service', async (_what, args, message) => {
  const { samples } = await writeOwn();
  const { code, out, err } = await start(['trigger', '--to', 'http://127.0.0.1:9/', ...args, ...samples]).ended;
  expect([code, out, err]).toEqual([2, '', expect.stringContaining(message)]);
});

test('an endpoint that does not believe a signed callback is told of CALLBACK_SECRET, and of no token', async () => {
  const { both } = await writeOwn();
  const { url } = await startMerchant(Array<number>(5).fill(401));
  const hint = expect.stringContaining('This command signs with CALLBACK_SECRET') as string;
  for (const args of both) {
    const { code, out } = await trigger('--to', url, ...args);
    expect([code, out.replaceAll('\n', ' ')]).toEqual([1, hint]);
    expect(out).not.toContain('token');
  }
});
