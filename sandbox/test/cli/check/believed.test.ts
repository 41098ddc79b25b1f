// What `check` says of endpoints that are right by hand, and of those that believe what they must not.
import { createHash, createHmac } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { parseJson } from '../../../../src/lib/text.js';
import { checkNamed, key, privateKeys, servePaystack, type Ways } from './defined-support.js';
import { makeBooks, readText, serveHere } from './support.js';

const signed = { CALLBACK_SECRET: key };

test('an endpoint by hand that follows the pages of Paystack is right, and nothing of it is less strict', async () => {
  const { book, commands } = await makeBooks();
  const checked = await checkNamed('paystack', await servePaystack(book), commands.slice(0, 2), signed);
  expect(checked).toMatchObject({ code: 0, wrong: [], less: [], err: '' });
  expect(checked.plan).toMatchObject({ type: 'plan', payouts: expect.any(Number) as number });
});

const accepted = new Set<string>();
test.each<[what: string, forgery: string, believes: NonNullable<Ways['believes']>]>([
  ['any signature', 'an empty signature', (headers) => headers['x-paystack-signature'] !== undefined],
  [
    'a signature that is not empty',
    'the signature of another secret',
    (headers) => Boolean(headers['x-paystack-signature']),
  ],
  [
    'an empty signature',
    'an empty signature',
    (headers, _body, right) => right.startsWith(String(headers['x-paystack-signature'] ?? '-')),
  ],
  [
    'a missing signature',
    'no signature',
    (headers, _body, right) => [undefined, right].includes(headers['x-paystack-signature'] as string),
  ],
  [
    'a signature that it has seen',
    'the signature of another callback',
    (headers, _body, right) => {
      const given = String(headers['x-paystack-signature']);
      if (given === right) accepted.add(given);
      return accepted.has(given);
    },
  ],
  ['whoever has the header of the tenant', 'no signature', (headers) => headers['x-tenant'] === 'a'],
])('an endpoint that believes %s is wrong by %s', async (_what, forgery, believes) => {
  const { book, count } = await makeBooks();
  const url = await servePaystack(book, { believes });
  const { code, wrong, trial } = await checkNamed('paystack', url, ['--header', 'x-tenant: a', ...count], signed);
  expect([code, wrong]).toEqual([1, ['forged']]);
  expect(trial('forged')?.because[0]).toContain(`A callback with ${forgery} was acknowledged, and booked.`);
});

test('an endpoint that checks the digest of pawaPay, and not its signature, is wrong', async () => {
  const { book, count } = await makeBooks();
  const seen = new Set<string>();
  const url = await serveHere((request, response) => {
    void readText(request).then(async (body) => {
      const digest = `sha-512=:${createHash('sha512').update(body).digest('base64')}:`;
      if (!request.headers.signature || request.headers['content-digest'] !== digest)
        return response.writeHead(401).end();
      const { payoutId, status } = (parseJson(body) ?? {}) as Partial<Record<string, string>>;
      if (payoutId === undefined || status === undefined) return response.writeHead(400).end();
      if (!seen.has(payoutId))
        await book({ data: { externalId: payoutId, status: status === 'COMPLETED' ? 'SUCCESS' : 'FAILED' } });
      seen.add(payoutId);
      return response.end();
    });
  });
  const env = { CALLBACK_SECRET: privateKeys.pawapay ?? '' };
  const { trial } = await checkNamed('pawapay', `${url}/callbacks`, count, env);
  expect(trial('forged')?.because[0]).toContain(
    'A callback with the signature of another secret was acknowledged, and booked.',
  );
  expect(trial('old-timestamp')?.verdict).toBe('less strict');
});

test('an endpoint that remembers before it verifies loses the payout that a forger has named', async () => {
  const { book, count } = await makeBooks();
  const seen = new Set<string>();
  const url = await servePaystack(book, {
    believes(headers, body, right) {
      const isRight = headers['x-paystack-signature'] === right;
      if (!isRight) seen.add(createHmac('sha1', 'any').update(body).digest('hex'));
      return isRight;
    },
    books: (callback, write) =>
      seen.has(createHmac('sha1', 'any').update(JSON.stringify(callback)).digest('hex')) ? undefined : write(),
  });
  const { wrong, trial } = await checkNamed('paystack', url, ['--settle', '2', ...count], signed);
  expect([wrong, trial('forged')?.verdict]).toEqual([['forged-first'], 'right']);
  expect(trial('forged-first')?.because).toEqual(['It was acknowledged and never booked: it is lost.']);
});

test('refusals that lock the sender out prove nothing', async () => {
  const { book, count } = await makeBooks();
  let refused = 0;
  const url = await servePaystack(book, {
    believes(headers, _body, right) {
      const isRight = headers['x-paystack-signature'] === right;
      // A cut body has a wrong signature, too.
      if (!isRight) refused += 1;
      return isRight && refused < 5;
    },
  });
  const { code, wrong, trial } = await checkNamed('paystack', url, ['--skip', 'forged-first', ...count], signed);
  expect([code, wrong, trial('forged')?.verdict]).toEqual([2, [], 'not seen']);
  expect(trial('forged')?.because).toEqual([
    expect.stringContaining('is the sender locked out? It responded: bad signature'),
  ]);
});

test('what the app booked is not known if --count fails in the last round: no row is right or lost', async () => {
  const { book, ledger, folder } = await makeBooks();
  const url = await servePaystack(book, {
    books(_callback, write) {
      setTimeout(() => void write(), 3_000);
      return undefined;
    },
  });
  // It fails when the first transfer has been counted.
  const script = `grep -q "$ID SUCCESS" ${folder}/first 2>/dev/null || test ! -s ${ledger} || cp ${ledger} ${folder}/first
    if [ "$(echo x >> ${folder}/calls; wc -l < ${folder}/calls)" -gt 54 ]; then echo 'too many clients'; exit 2; fi
    grep -c "^$ID $STATUS$" ${ledger}`;
  const { code, wrong, trial } = await checkNamed('paystack', url, ['--count', script], signed);
  expect([code, wrong]).toEqual([2, []]);
  expect(trial('duplicate')).toMatchObject({
    verdict: 'not seen',
    because: ['Expected the command of --count to print a whole number, got too many clients.'],
  });
});

test('a script reads $ID and $STATUS from its environment', async () => {
  const { book, ledger, folder } = await makeBooks();
  await writeFile(`${folder}/count.sh`, `grep -c "^$ID $STATUS$" ${ledger}`);
  const { code, wrong, trial } = await checkNamed(
    'paystack',
    await servePaystack(book),
    ['--count', `sh ${folder}/count.sh`],
    signed,
  );
  expect([code, wrong, trial('reversed')?.verdict]).toEqual([0, [], 'right']);
});
