// `check --service`: the cases of another service, by its definition and samples of its callbacks.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runSandboxCli as run, startSandboxCli as start } from '../../../../test/cli/support.js';
import { parseJson } from '../../../../src/lib/text.js';
import { checkService, key, privateKeys, secrets, withService, writeService } from './defined-support.js';
import { gaps, inOrder, makeBooks, readText, serveHere } from './support.js';

const { definition: always, reversal, timestamp, pending, events } = gaps;
const neverReversed = [...always, ...timestamp, ...reversal, ...pending, ...events];

test.each<[string, string, { path?: string; args?: string[]; unseen: string[] }]>([
  ['paystack', 'signs the body, and takes successes back', { unseen: [...always, ...timestamp, ...pending] }],
  ['korapay', 'signs a part of the body, and has one id', { unseen: neverReversed }],
  ['mtn', 'signs nothing', { path: `/${key}`, unseen: neverReversed }],
  ['cinetpay', 'sends a form', { path: `/${key}`, unseen: [...neverReversed, ...gaps.form] }],
  ['wise', 'signs with a private key', { unseen: [...always, ...timestamp, ...pending, ...gaps.amount] }],
  ['pawapay', 'signs by RFC 9421', { unseen: [...always, ...reversal, ...pending, ...events] }],
  ['flutterwave3', 'has a secret in a header', { unseen: [...always, ...timestamp, ...reversal, ...pending] }],
])('the router with %s, which %s, is right', async (name, _what, { path = '', unseen }) => {
  const { book, count } = await makeBooks();
  const url = await withService(name, book);
  const stranger = path === '' ? [] : ['--forged', `${url}/the-token-of-a-stranger`];
  const checked = await checkService(name, url + path, '--strict', ...stranger, ...count);
  expect(checked).toMatchObject({ code: 0, wrong: [], less: [], unseen: inOrder(...unseen), err: '' });
  expect(checked.trial('forged')?.verdict).toBe('right');
});

interface PaystackCallback {
  readonly event: string;
  readonly data: { readonly id: unknown; readonly reference: string; readonly recipient: { readonly id: unknown } };
}

/** Serves what a reader of Paystack's documentation may write, without its signature. */
const serveByHand = (handle: (callback: PaystackCallback) => Promise<void>): Promise<string> =>
  serveHere((request, response) => {
    readText(request)
      .then((body) => handle(JSON.parse(body) as PaystackCallback))
      .then(
        () => response.writeHead(200).end(),
        () => response.writeHead(400).end(),
      );
  });

test('the faults of a handler by hand are found in the dialect of its service', async () => {
  const { book, count } = await makeBooks();
  const paid = new Set<string>();
  const url = await serveByHand(async ({ event, data: { reference } }) => {
    if (!event.startsWith('transfer.')) return;
    if (event !== 'transfer.success') return book({ data: { externalId: reference, status: 'FAILED' } });
    if (paid.has(reference)) return;
    paid.add(reference);
    await book({ data: { externalId: reference, status: 'SUCCESS' } });
  });
  const { code, wrong, less, trial } = await checkService('paystack', url, '--settle', '1', ...count);
  expect(code).toBe(1);
  expect(wrong).toEqual(['failed-duplicate', 'failed-burst', 'failed-lost', 'unknown-state', 'forged']);
  // The samples of a service that is not named may have another name that the app knows.
  expect(trial('reversed')?.because).toEqual([expect.stringContaining('Give --event-id data.transfer_code')]);
  expect(less).toEqual(['failed-reversed', 'unbookable', 'flip', 'failed-after', 'other-amount']);
  expect(trial('failed-reversed')?.because).toEqual(['The money of one payout was refunded 3 times.']);
  expect(trial('unknown-state')?.because).toEqual(['A state that the definition does not have was booked.']);
});

test('a foreign event that is refused, and an unknown state that is booked, are found', async () => {
  const { book, count } = await makeBooks();
  const url = await serveByHand(async ({ event, data }) => {
    if (!event.startsWith('transfer.')) throw new Error('What is this?');
    await book({ data: { externalId: data.reference, status: event === 'transfer.failed' ? 'FAILED' : 'SUCCESS' } });
  });
  const { trial } = await checkService('paystack', url, '--settle', '1', ...count);
  expect(trial('foreign-event')?.because[0]).toContain('The service repeats it, and may turn your endpoint off.');
  expect(trial('unknown-state')?.because).toEqual(['A state that the definition does not have was booked.']);
});

test('ids are replaced where `read` reads them, numbers stay numbers, and the commands get them', async () => {
  const { folder } = await makeBooks();
  const received: (PaystackCallback | undefined)[] = [];
  const url = await serveHere((request, response) => {
    void readText(request).then((body) => {
      received.push(parseJson(body) as PaystackCallback | undefined);
      response.writeHead(200).end();
    });
  });
  const prepared = join(folder, 'prepared');
  const prepare = `echo "$ID $TRANSFER_ID $AMOUNT $CURRENCY" >> ${prepared} && test -n "$STATUS"`;
  await checkService('paystack', url, '--prepare', prepare);
  const [first] = received;
  expect(first?.data).toMatchObject({
    id: expect.any(Number) as number,
    reference: expect.stringMatching(/^check-success-/) as string,
    recipient: { id: 56_824_902 },
  });
  const lines = (await readFile(prepared, 'utf8')).split('\n');
  expect(lines[0]).toBe(`${first?.data.reference ?? ''} ${String(first?.data.id)} 250000 NGN`);
});

const definition = (externalId: string): string => `
  import { defineService } from 'transfer-sandbox';
  export const service = defineService({
    read: ({ state, id, reference }) => ({ state, id, externalId: ${externalId} }),
    states: { paid: 'SUCCESS', bounced: 'FAILED', returned: 'REVERSED' },
  });`;

/** Checks nothing: the definition or the samples are refused before. A sample is named after its state. */
async function refuse(externalId: string, change: { success?: object; args?: readonly string[] } = {}) {
  const { folder } = await makeBooks();
  await writeFile(join(folder, 'own.mjs'), definition(externalId));
  for (const [id, state] of ['paid', 'bounced', 'returned'].entries()) {
    const sample = { state, id: id + 7, reference: `payout-${id + 17}` };
    const payload = state === 'paid' ? (change.success ?? sample) : sample;
    await writeFile(join(folder, `${state}.json`), JSON.stringify(payload));
  }
  const args = change.args ?? ['--success', 'paid.json', '--failed', 'bounced.json'];
  return start(['check', '--to', 'http://127.0.0.1:9/', '--service', './own.mjs', ...args], { cwd: folder }).ended;
}

test.each<[string, Parameters<typeof refuse>, string]>([
  ['an id that `read` makes of another one', ['reference.slice(4)'], 'the same state after id and reference of '],
  ['an id that is in no value', ["'payout-17'"], 'to have a value that `read` takes `externalId` from.'],
  [
    'a sample with another status',
    ['reference', { success: { state: 'bounced', id: 7, reference: 'a' } }],
    'Expected paid.json to be a callback that is SUCCESS, got one that is FAILED.',
  ],
  ['a sample that `read` refuses', ['reference', { success: { state: 'gone', id: 7 } }], 'a key of `states`, got gone'],
  ['no samples', ['reference', { args: [] }], 'Expected --success and --failed beside --service'],
  [
    'a file that is not there',
    ['reference', { args: ['--success', 'no', '--failed', 'no'] }],
    "got ENOENT: no such file or directory, open 'no'.",
  ],
])('%s ends with 2', async (_what, args, message) => {
  const { code, out, err } = await refuse(...args);
  expect([code, out, err]).toEqual([2, '', expect.stringContaining(message)]);
});

test.each([
  [undefined, 'got undefined.'],
  ['', 'got an empty string.'],
])('a definition whose variable is missing (%s) shows how to set it', async (secret, got) => {
  const { folder } = await makeBooks();
  const source = `import { hmacSignature } from 'transfer-sandbox';
    export const verify = hmacSignature({ header: 'x-signature', secrets: process.env.CALLBACK_SECRET });`;
  await writeFile(join(folder, 'own.mjs'), source);
  const args = ['--service', './own.mjs', '--success', 'a', '--failed', 'b'];
  const env = secret === undefined ? {} : { CALLBACK_SECRET: secret };
  const { code, err } = await start(['check', '--to', 'http://127.0.0.1:9/', ...args], { env, cwd: folder }).ended;
  expect([code, err]).toEqual([2, expect.stringContaining(got)]);
  expect(err).toContain('Write CALLBACK_SECRET=… before the command if that is the variable which it reads.');
});

test('a sample without its definition, and a port for a service that is not imitated, are refused', async () => {
  const to = ['check', '--to', 'http://127.0.0.1:9/'];
  expect((await run(...to, '--success', 'a.json')).err).toContain('Expected --service beside --success');
  expect((await run(...to, '--service', 'a.mjs', '--port', '1')).err).toContain('Expected --port or --service');
});

test('a private key in CALLBACK_SECRET that is not the one of the definition ends with 2', async () => {
  const { folder } = await makeBooks();
  const service = await writeService('wise', folder);
  const env = { ...secrets, CALLBACK_SECRET: privateKeys.pawapay ?? '' };
  const { code, err } = await start(['check', '--to', 'http://127.0.0.1:9/', ...service], { env, cwd: folder }).ended;
  expect([code, err]).toEqual([
    2,
    expect.stringContaining('Expected CALLBACK_SECRET to be the private key, in PEM, of'),
  ]);
  expect(err).not.toContain('BEGIN');
});

test('a definition of which one verifier cannot sign names the option that must, when the first callback is refused', async () => {
  const { folder } = await makeBooks();
  const [, , ...samples] = await writeService('paystack', folder);
  const verify = `[hmacSignature({ header: 'x-signature', secrets: () => '${key}' }), headerToken('x-token', '${key}')]`;
  const source = `import { hmacSignature, headerToken } from 'transfer-sandbox';
    export const half = { ...(await import('./paystack.mjs')).paystack, verify: ${verify} };`;
  await writeFile(join(folder, 'half.mjs'), source);
  const args = ['--service', join(folder, 'half.mjs'), ...samples];
  const url = await serveHere((_request, response) => response.writeHead(401).end());
  const { code, out } = await start(['check', '--to', url, ...args], { env: secrets, cwd: folder }).ended;
  expect([code, out.replaceAll(/\s+/g, ' ')]).toEqual([2, expect.stringContaining('give the token in --to, --header')]);
});
