// `check --service NAME`: the services whose definitions and samples are in the package.
import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { messageSignature } from 'transfer-callbacks';
import { startSandboxCli as start } from '../../../../test/cli/support.js';
import { listFiles } from '../../../../test/docs/pages.js';
import { serveByHand } from './by-hand.js';
import { checkNamed, key, privateKeys, publicUrl, secrets, withService } from './defined-support.js';
import { gaps, inOrder, makeBooks, serveBodies } from './support.js';

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

// What a careful reader writes by hand gets neither ✗ nor `!`, either.
test.each(rows)('the router with %s is right, and so is an endpoint by hand', async (name, env, unseen) => {
  const { book, commands } = await makeBooks();
  for (const url of [await withService(name, book), `${await serveByHand(name, book)}/callbacks`]) {
    const path = env === undefined ? `/${key}` : '';
    const stranger = env === undefined ? ['--forged', `${url}/the-token-of-a-stranger`] : [];
    const checked = await checkNamed(name, url + path, ['--strict', ...stranger, ...commands], env ?? {});
    expect(checked).toMatchObject({ code: 0, wrong: [], less: [], unseen: inOrder(...unseen), err: '' });
    expect(checked.origin).toMatchObject({ type: 'service', service: name, isSeenLive: false });
    expect(checked.plan).toMatchObject({ type: 'plan', payouts: expect.any(Number) as number });
    expect(['forged', 'handler-fails'].map((row) => checked.trial(row)?.verdict)).toEqual(['right', 'right']);
  }
});

test('each definition has a row here', () => {
  expect(rows.map(([name]) => name).sort()).toEqual(names.sort());
});

test('pawaPay signs the address of --to, in DER, and no variable of a definition is left to the commands', async () => {
  const verdicts: boolean[] = [];
  const signatures: string[] = [];
  const url = await serveBodies((body, request) => {
    const verify = messageSignature({ publicKeys: secrets.PAWAPAY_PUBLIC_KEY, url: `${url}/callbacks` });
    verdicts.push(verify(request, undefined, Buffer.from(body)));
    signatures.push(String(request.headers.signature));
    return verdicts.at(-1) === true ? 200 : 401;
  });
  const prepare = ['--prepare', 'test -z "$PAWAPAY_PUBLIC_KEY$PAWAPAY_CALLBACK_URL"'];
  const env = { CALLBACK_SECRET: privateKeys.pawapay ?? '' };
  const { code, err } = await checkNamed('pawapay', `${url}/callbacks`, prepare, env);
  expect([code, err, verdicts[0]]).toEqual([0, '', true]);
  // Two numbers would be 64 bytes.
  expect(Buffer.from(signatures[0]?.slice('sig=:'.length, -1) ?? '', 'base64').length).toBeGreaterThan(66);
});

const { privateKey: rsaKey } = generateKeyPairSync('rsa', { modulusLength: 1_024 });
const shortKey = rsaKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const list = `Expected a service of your own, or the name of one: ${[...names].sort().join(', ')}.`;
const privateKey =
  'CALLBACK_SECRET to be the private key, in PEM, for the public key of wise that your endpoint has, got';

test.each<[what: string, args: string, secret: string | undefined, message: string]>([
  ['no value', '--service --strict', undefined, list],
  ['no value at the end', '--service', undefined, list],
  ['an empty value', '--service=', undefined, list],
  ['a name that is none', '--service paystak', undefined, `${list} Did you mean \`paystack\`?`],
  ['a name of every object', '--service constructor', undefined, list],
  ['a file of that name', '--service ./paystack', undefined, '--success and --failed beside --service'],
  ['a sample beside a name', '--service mtn --success a', undefined, 'mtn has its own samples.'],
  ['a port beside a name', '--service mtn --port 1', undefined, '--port or --service, not both'],
  [
    'no secret',
    '--service paystack',
    undefined,
    'Expected the environment variable CALLBACK_SECRET to be the test secret key of paystack that your endpoint has, ' +
      'got nothing. Write CALLBACK_SECRET=… before the command.',
  ],
  ['an empty secret', '--service monnify', '', 'got nothing. Write CALLBACK_SECRET=… before the command.'],
  ['no private key', '--service pawapay', undefined, 'Write CALLBACK_SECRET="$(cat test.pem)" before the command.'],
  ['a short secret', '--service monnify', 'short', 'CALLBACK_SECRET to be a string of at least 16 characters'],
  [
    'a live key',
    '--service korapay',
    'sk_live_0123456789abcdef',
    'CALLBACK_SECRET to be a key for tests, got one that begins with sk_live_.',
  ],
  ['a public key', '--service wise', secrets.WISE_PUBLIC_KEY, `${privateKey} a string of`],
  ['a private key of another kind', '--service wise', shortKey, `${privateKey} a key of an`],
])('--service with %s ends with 2', async (_what, args, secret, message) => {
  const env = secret === undefined ? {} : { CALLBACK_SECRET: secret };
  const { code, out, err } = await start(['check', '--to', 'http://127.0.0.1:9/', ...args.split(' ')], { env }).ended;
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
