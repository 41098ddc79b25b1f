// `check --service`: the cases of another service, by its definition and samples of its callbacks.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startSandboxCli as start } from '../../../../test/cli/support.js';
import { parseJson } from '../../../../src/lib/text.js';
import { checkService, key, privateKeys, secrets, withService, writeService } from './defined-support.js';
import { gaps, inOrder, makeBooks, only, serveBodies, writeFiles } from './support.js';

const { definition: always, reversal, timestamp, pending, events } = gaps;
const neverReversed = [...always, ...timestamp, ...reversal, ...pending, ...events];

test.each<[name: string, what: string, unseen: string[]]>([
  ['paystack', 'signs the body, and takes successes back', [...always, ...timestamp, ...pending]],
  ['korapay', 'signs a part of the body, and has one id', neverReversed],
  ['cinetpay', 'sends a form', [...neverReversed, ...gaps.form]],
  ['wise', 'signs with a private key', [...always, ...timestamp, ...pending, ...gaps.amount]],
])('the router with %s, which %s, is right by a definition and samples', async (name, _what, unseen) => {
  const { book, count } = await makeBooks();
  const url = await withService(name, book);
  const [path, forged] = name === 'cinetpay' ? [`/${key}`, ['--forged', `${url}/the-token-of-a-stranger`]] : ['', []];
  const checked = await checkService(name, url + path, '--strict', ...forged, ...count);
  expect(checked).toMatchObject({ code: 0, wrong: [], less: [], unseen: inOrder(...unseen), err: '' });
  expect(checked.trial('forged')?.verdict).toBe('right');
});

interface PaystackCallback {
  readonly event: string;
  readonly data: { readonly id: unknown; readonly reference: string; readonly recipient: { readonly id: unknown } };
}

test('the faults of a handler by hand are found in the dialect of its service', async () => {
  const { book, count } = await makeBooks();
  const paid = new Set<string>();
  const url = await serveBodies(async (body) => {
    const { event, data } = JSON.parse(body) as PaystackCallback;
    const { reference: externalId } = data;
    if (!event.startsWith('transfer.') || paid.has(`${event} ${externalId}`)) return 200;
    if (event === 'transfer.success') paid.add(`${event} ${externalId}`);
    await book({ data: { externalId, status: event === 'transfer.success' ? 'SUCCESS' : 'FAILED' } });
    return 200;
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

test('a foreign event that is refused is found', async () => {
  const url = await serveBodies((body) => (body.includes('"transfer.') ? 200 : 400));
  const { trial } = await checkService('paystack', url, ...only('foreign-event'));
  expect(trial('foreign-event')).toMatchObject({
    verdict: 'wrong',
    because: [expect.stringContaining('The service repeats it, and may turn your endpoint off.')],
  });
});

test('ids are replaced where `read` reads them, numbers stay numbers, and the commands get them', async () => {
  const { folder } = await makeBooks();
  const received: (PaystackCallback | undefined)[] = [];
  const url = await serveBodies((body) => {
    received.push(parseJson(body) as PaystackCallback | undefined);
    return 200;
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

const nowhere = ['check', '--to', 'http://127.0.0.1:9/'];

/** Checks nothing: the definition or the samples are refused before. */
async function refuse(
  externalId: string,
  { success = {}, args = ['--success', 'paid.json', '--failed', 'bounced.json'] } = {},
) {
  const { folder } = await makeBooks();
  const own = `import { defineService } from 'transfer-sandbox';
    export const service = defineService({
      read: ({ state, id, reference }) => ({ state, id, externalId: ${externalId} }),
      states: { paid: 'SUCCESS', bounced: 'FAILED', returned: 'REVERSED' },
    });`;
  const paid = { state: 'paid', id: 7, reference: 'payout-17', ...success };
  const bounced = { state: 'bounced', id: 8, reference: 'payout-18' };
  await writeFiles(folder, { 'own.mjs': own, 'paid.json': paid, 'bounced.json': bounced });
  return start([...nowhere, '--service', './own.mjs', ...args], { cwd: folder }).ended;
}

test.each<[string, Parameters<typeof refuse>, string]>([
  ['an id that `read` makes of another one', ['reference.slice(4)'], 'the same state after id and reference of '],
  ['an id that is in no value', ["'payout-17'"], 'to have a value that `read` takes `externalId` from.'],
  [
    'a sample with another status',
    ['reference', { success: { state: 'bounced' } }],
    'Expected paid.json to be a callback that is SUCCESS, got one that is FAILED.',
  ],
  ['a sample that `read` refuses', ['reference', { success: { state: 'gone' } }], 'a key of `states`, got gone'],
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
  await writeFiles(folder, { 'own.mjs': source });
  const args = ['--service', './own.mjs', '--success', 'a', '--failed', 'b'];
  const env = secret === undefined ? {} : { CALLBACK_SECRET: secret };
  const { code, err } = await start([...nowhere, ...args], { env, cwd: folder }).ended;
  expect([code, err]).toEqual([2, expect.stringContaining(got)]);
  expect(err).toContain('Write CALLBACK_SECRET=… before the command if that is the variable which it reads.');
});

test('a private key in CALLBACK_SECRET that is not the one of the definition ends with 2', async () => {
  const { folder } = await makeBooks();
  const service = await writeService('wise', folder);
  const env = { ...secrets, CALLBACK_SECRET: privateKeys.pawapay ?? '' };
  const { code, err } = await start([...nowhere, ...service], { env, cwd: folder }).ended;
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
  await writeFiles(folder, { 'half.mjs': source });
  const args = ['--service', join(folder, 'half.mjs'), ...samples];
  const url = await serveBodies(() => 401);
  const { code, out } = await start(['check', '--to', url, ...args], { env: secrets, cwd: folder }).ended;
  expect([code, out.replaceAll(/\s+/g, ' ')]).toEqual([2, expect.stringContaining('give the token in --to, --header')]);
});
