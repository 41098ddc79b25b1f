// `check --service NAME`: the services whose definitions and samples are in the package.
import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { messageSignature } from 'transfer-callbacks';
import { startSandboxCli as start } from '../../../../test/cli/support.js';
import { findBlocks, findPage, listFiles } from '../../../../test/docs/pages.js';
import { checkNamed, key, privateKeys, publicUrl, secrets, withService } from './defined-support.js';
import { gaps, inOrder, makeBooks, readText, serveHere, startEndpoint } from './support.js';

const names = listFiles('examples/services', '.ts').map((path) => path.slice('examples/services/'.length, -3));

const [signed, address] = [{ CALLBACK_SECRET: key }, undefined];
const { definition, reversal, timestamp, pending, events } = gaps;
const rows: [name: string, env: Record<string, string> | undefined, unseen: string[]][] = [
  ['paystack', signed, [...definition, ...timestamp, ...pending]],
  ['flutterwave3', signed, [...definition, ...timestamp, ...pending, ...reversal]],
  ['flutterwave4', signed, [...definition, ...timestamp, ...pending]],
  [
    'pawapay',
    { CALLBACK_SECRET: privateKeys.pawapay ?? '', PAWAPAY_CALLBACK_URL: publicUrl },
    [...definition, ...reversal, ...pending, ...events],
  ],
  ['mtn', address, [...definition, ...timestamp, ...reversal, ...pending, ...events]],
  ['korapay', signed, [...definition, ...timestamp, ...reversal, ...pending, ...events]],
  ['monnify', signed, [...definition, ...timestamp, ...pending]],
  ['mpesa', address, [...definition, ...timestamp, ...reversal, ...pending, ...events, 'unknown-state']],
  ['cinetpay', address, [...definition, ...timestamp, ...reversal, ...events, ...gaps.form]],
  ['wise', { CALLBACK_SECRET: privateKeys.wise ?? '' }, [...definition, ...timestamp, ...gaps.amount]],
  ['razorpayx', signed, [...definition, ...timestamp]],
];

test.each(rows)('the router with %s is right', async (name, env, unseen) => {
  const { book, count } = await makeBooks();
  const url = await withService(name, book);
  const path = env === undefined ? `/${key}` : '';
  const stranger = env === undefined ? ['--forged', `${url}/the-token-of-a-stranger`] : [];
  const checked = await checkNamed(name, url + path, ['--strict', ...stranger, ...count], env ?? {});
  expect(checked).toMatchObject({ code: 0, wrong: [], less: [], unseen: inOrder(...unseen), err: '' });
  expect(checked.origin).toMatchObject({ type: 'service', service: name, isSeenLive: false });
});

test('each definition has a row here', () => {
  expect(rows.map(([name]) => name).sort()).toEqual(names.sort());
});

test('a refund for each copy of a failure is found in a handler of Paystack', async () => {
  const { folder } = await makeBooks();
  const env = { PAYSTACK_SECRET_KEY: key };
  const { url, ledger, payouts } = await startEndpoint('paystack-refunds-each-copy.mjs', folder, env);
  const commands = ['--prepare', `echo "$ID" >> ${payouts}`, '--count', `grep -c "^$ID $STATUS$" ${ledger}`];
  const { code, wrong, less, trial } = await checkNamed('paystack', url, ['--settle', '3', ...commands], signed);
  expect([code, wrong]).toEqual([
    1,
    [
      ...['failed-duplicate', 'failed-burst', 'failed-lost'],
      ...['reversed', 'reversed-burst', 'reversed-first', 'success-again'],
    ],
  ]);
  expect(less).toEqual(['unbookable', 'unknown-state', 'flip', 'failed-after', 'other-amount', 'list']);
  expect(trial('failed-duplicate')?.because).toEqual(['One payout was booked 2 times.']);
  expect(trial('forged')).toMatchObject({ verdict: 'right', responses: [...Array<string>(4).fill('401'), '200'] });
});

test('the README shows what the handler of Paystack gets', async () => {
  const { folder } = await makeBooks();
  const { url, ledger, payouts } = await startEndpoint('paystack-refunds-each-copy.mjs', folder, {
    PAYSTACK_SECRET_KEY: key,
  });
  const commands = ['--prepare', `echo "$ID" >> ${payouts}`, '--count', `grep -c "$ID $STATUS" ${ledger}`];
  const args = ['check', '--service', 'paystack', '--to', url, '--settle', '3', ...commands];
  const { out } = await start(args, { env: signed }).ended;
  const [shown] = findBlocks(findPage('sandbox/README.md'), 'text');
  expect(out).toContain(shown?.code ?? expect.fail('It shows no check.'));
  expect(out).toMatch(/^paystack, as read in public documentation on [\d-]+, not seen live\. Source:\n/);
});

test('each copy that is booked again is found in a handler of Flutterwave, which knows its ids alone', async () => {
  const { folder } = await makeBooks();
  const env = { FLUTTERWAVE_SECRET_HASH: key };
  const { url, ledger, payouts } = await startEndpoint('flutterwave-books-each-copy.mjs', folder, env);
  const prepare = `echo "$TRANSFER_ID $ID" >> ${payouts}`;
  const commands = ['--prepare', prepare, '--count', `grep -c "^$ID $STATUS$" ${ledger}`];
  const { code, wrong, less, trial } = await checkNamed('flutterwave3', url, ['--settle', '3', ...commands], signed);
  expect([code, wrong]).toEqual([
    1,
    ['duplicate', 'burst', 'response-lost', 'failed-duplicate', 'failed-burst', 'failed-lost'],
  ]);
  expect(less).toEqual(['unbookable', 'unknown-state', 'flip', 'failed-after', 'other-amount', 'list']);
  expect(trial('forged')).toMatchObject({ verdict: 'right', responses: ['401', '401', '401', '200'] });
});

test('pawaPay signs the address of --to, in DER, and no variable of a definition is left to the commands', async () => {
  const verdicts: boolean[] = [];
  const signatures: string[] = [];
  const url = await serveHere((request, response) => {
    void readText(request).then((body) => {
      const verify = messageSignature({ publicKeys: secrets.PAWAPAY_PUBLIC_KEY, url: `${url}/callbacks` });
      verdicts.push(verify(request, undefined, Buffer.from(body)));
      signatures.push(String(request.headers.signature));
      response.writeHead(verdicts.at(-1) === true ? 200 : 401).end();
    });
  });
  const prepare = ['--prepare', 'test -z "$PAWAPAY_PUBLIC_KEY$PAWAPAY_CALLBACK_URL"'];
  const env = { CALLBACK_SECRET: privateKeys.pawapay ?? '' };
  const { code, err } = await checkNamed('pawapay', `${url}/callbacks`, prepare, env);
  expect([code, err, verdicts[0]]).toEqual([0, '', true]);
  // Two numbers would be 64 bytes.
  expect(Buffer.from(signatures[0]?.slice('sig=:'.length, -1) ?? '', 'base64').length).toBeGreaterThan(66);
});

const shortKey = generateKeyPairSync('rsa', { modulusLength: 1_024 })
  .privateKey.export({ type: 'pkcs8', format: 'pem' })
  .toString();
const to = ['--to', 'http://127.0.0.1:9/'];
const list = `Expected a service of your own, or the name of one: ${[...names].sort().join(', ')}.`;

test.each<[what: string, args: string[], env: Record<string, string>, message: string]>([
  ['no value', ['--service', ...to], {}, list],
  ['no value at the end', [...to, '--service'], {}, list],
  ['an empty value', [...to, '--service='], {}, list],
  ['a name that is none', [...to, '--service', 'paystak'], {}, `${list} Did you mean \`paystack\`?`],
  ['a name of every object', [...to, '--service', 'constructor'], {}, list],
  ['a file of that name', [...to, '--service', './paystack'], {}, '--success and --failed beside --service'],
  ['a sample beside a name', [...to, '--service', 'mtn', '--success', 'a'], {}, 'mtn has its own samples.'],
  ['a port beside a name', [...to, '--service', 'mtn', '--port', '1'], {}, '--port or --service, not both'],
  [
    'no secret',
    [...to, '--service', 'paystack'],
    {},
    'Expected the environment variable CALLBACK_SECRET to be the test secret key of paystack that your endpoint has, ' +
      'got nothing. Write CALLBACK_SECRET=… before the command.',
  ],
  [
    'an empty secret',
    [...to, '--service', 'monnify'],
    { CALLBACK_SECRET: '' },
    'got nothing. Write CALLBACK_SECRET=… before the command.',
  ],
  [
    'no private key',
    [...to, '--service', 'pawapay'],
    {},
    'got nothing. Write CALLBACK_SECRET="$(cat test.pem)" before the command.',
  ],
  [
    'a secret that is too short',
    [...to, '--service', 'monnify'],
    { CALLBACK_SECRET: 'short' },
    'CALLBACK_SECRET to be a string of at least 16 characters',
  ],
  [
    'a live key',
    [...to, '--service', 'korapay'],
    { CALLBACK_SECRET: 'sk_live_0123456789abcdef' },
    'CALLBACK_SECRET to be a key for tests, got one that begins with sk_live_.',
  ],
  [
    'a public key',
    [...to, '--service', 'wise'],
    { CALLBACK_SECRET: secrets.WISE_PUBLIC_KEY },
    'CALLBACK_SECRET to be the private key, in PEM, for the public key of wise that your endpoint has, got a string of',
  ],
  [
    'a private key of another kind',
    [...to, '--service', 'wise'],
    { CALLBACK_SECRET: shortKey },
    'CALLBACK_SECRET to be the private key, in PEM, for the public key of wise that your endpoint has, got a key of an',
  ],
])('--service with %s ends with 2', async (_what, args, env, message) => {
  const { code, out, err } = await start(['check', ...args], { env }).ended;
  expect([code, out, err]).toEqual([2, '', expect.stringContaining(message)]);
  expect(err).not.toMatch(/0123456789abcdef|BEGIN/);
});

test('a secret that the endpoint does not have is named when it refuses the first callback', async () => {
  const { book } = await makeBooks();
  const url = await withService('paystack', book);
  const env = { CALLBACK_SECRET: 'another-secret-0123456789' };
  const { code, result } = await checkNamed('paystack', url, [], env);
  expect([code, result?.missing]).toEqual([2, expect.stringContaining('This command signs with CALLBACK_SECRET')]);
});
