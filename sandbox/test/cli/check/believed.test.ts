// What `check` says of endpoints that believe what they must not, or whose bookings it cannot count.
import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { expect, test } from 'vitest';
import { checkPaystack, hmac, serveByHand, servePaystack, type Ways } from './by-hand.js';
import { checkNamed, key, privateKeys } from './defined-support.js';
import { makeBooks, writeFiles } from './support.js';

const signed = { CALLBACK_SECRET: key };

const accepted = new Set<string>();
const isRight = (body: string, { 'x-paystack-signature': given }: IncomingHttpHeaders) =>
  given === hmac('sha512', body);

test.each<[what: string, forgery: string, believes: NonNullable<Ways['believes']>]>([
  ['any signature', 'an empty signature', (_body, headers) => headers['x-paystack-signature'] !== undefined],
  [
    'a signature that is not empty',
    'the signature of another secret',
    (_body, headers) => Boolean(headers['x-paystack-signature']),
  ],
  [
    'an empty signature',
    'an empty signature',
    (body, headers) => headers['x-paystack-signature'] === '' || isRight(body, headers),
  ],
  [
    'a missing signature',
    'no signature',
    (body, headers) => headers['x-paystack-signature'] === undefined || isRight(body, headers),
  ],
  [
    'a signature that it has seen',
    'the signature of another callback',
    (body, headers) => {
      const given = String(headers['x-paystack-signature']);
      if (isRight(body, headers)) accepted.add(given);
      return accepted.has(given);
    },
  ],
  ['whoever has the header of the tenant', 'no signature', (_body, headers) => headers['x-tenant'] === 'a'],
])('an endpoint that believes %s is wrong by %s', async (_what, forgery, believes) => {
  const { code, wrong, trial } = await checkPaystack({ believes }, '--header', 'x-tenant: a');
  expect([code, wrong]).toEqual([1, ['forged']]);
  expect(trial('forged')?.because[0]).toContain(`A callback with ${forgery} was acknowledged, and booked.`);
});

test('an endpoint that checks the digest of pawaPay, and not its signature, is wrong', async () => {
  const { book, count } = await makeBooks();
  const url = await serveByHand('pawapay', book, {
    believes(body, { signature = '', 'content-digest': digest }) {
      return signature !== '' && digest === `sha-512=:${createHash('sha512').update(body).digest('base64')}:`;
    },
  });
  const env = { CALLBACK_SECRET: privateKeys.pawapay ?? '' };
  const { trial } = await checkNamed('pawapay', `${url}/callbacks`, count, env);
  expect(trial('forged')?.because[0]).toContain(
    'A callback with the signature of another secret was acknowledged, and booked.',
  );
  expect(trial('old-timestamp')?.verdict).toBe('less strict');
});

test('an endpoint that remembers before it verifies loses the payout that a forger has named', async () => {
  const refused = new Set<string>();
  const ways: Ways = {
    believes(body, headers) {
      if (!isRight(body, headers)) refused.add(body);
      return isRight(body, headers);
    },
    books: (write, _status, body) => (refused.has(body) ? undefined : write()),
  };
  const { wrong, trial } = await checkPaystack(ways, '--settle', '2');
  expect([wrong, trial('forged')?.verdict]).toEqual([['forged-first'], 'right']);
  expect(trial('forged-first')?.because).toEqual(['It was acknowledged and never booked: it is lost.']);
});

test('refusals that lock the sender out prove nothing', async () => {
  let refused = 0;
  const ways: Ways = {
    believes(body, headers) {
      // A cut body has a wrong signature, too.
      if (!isRight(body, headers)) refused += 1;
      return isRight(body, headers) && refused < 5;
    },
  };
  const { code, wrong, trial } = await checkPaystack(ways, '--skip', 'forged-first');
  expect([code, wrong, trial('forged')?.verdict]).toEqual([2, [], 'not seen']);
  expect(trial('forged')?.because).toEqual([
    expect.stringContaining('is the sender locked out? It responded: bad signature'),
  ]);
});

test('what the app booked is not known if --count fails in the last round: no row is right or lost', async () => {
  const { book, ledger, folder } = await makeBooks();
  const url = await servePaystack(book, {
    books(write) {
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
  await writeFiles(folder, { 'count.sh': `grep -c "^$ID $STATUS$" ${ledger}` });
  const url = await servePaystack(book);
  const { code, wrong, trial } = await checkNamed('paystack', url, ['--count', `sh ${folder}/count.sh`], signed);
  expect([code, wrong, trial('reversed')?.verdict]).toEqual([0, [], 'right']);
});
