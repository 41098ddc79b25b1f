// Endpoints in two languages, whose verdict was known by reading before `check` could see it.
import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { check, makeBooks, startEndpoint } from './support.js';

const countIn = (ledger: string): string[] => [
  '--count',
  `grep -c "^$ID $([ $STATUS = SUCCESS ] && echo paid || echo refund)$" ${ledger}`,
];

function hasPython(): boolean {
  try {
    execFileSync('python3', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

test("an endpoint that knows a payout by the service's id and amount, and is slow and strict, is right", async () => {
  const { folder } = await makeBooks();
  const { url, ledger, payouts } = await startEndpoint('slow-and-strict.mjs', folder);
  const prepare = `echo "$TRANSFER_ID $AMOUNT $CURRENCY" >> ${payouts}`;
  const args = ['--header', 'x-token: the-token', '--forged', url, '--prepare', prepare, '--strict'];
  expect(await check(url, ...args, ...countIn(ledger))).toMatchObject({ code: 0, wrong: [], unseen: [] });
});

test('a failure that is refunded, and also booked as paid, is wrong in each row of a failure', async () => {
  const { folder } = await makeBooks();
  const { url, ledger } = await startEndpoint('falls-through.mjs', folder);
  const { code, wrong, trial } = await check(url, ...countIn(ledger));
  expect(code).toBe(1);
  expect(wrong).toEqual(['failed', 'failed-duplicate', 'failed-burst', 'failed-lost']);
  expect(trial('failed')?.because).toEqual(['A failed payout was booked as paid.']);
  expect(trial('flip')).toMatchObject({ verdict: 'less strict', ids: [expect.stringMatching(/^check-flip-/)] });
});

describe.runIf(hasPython())('in Python:', () => {
  test('an endpoint that handles one request at a time and never reads data.id is not wrong', async () => {
    const { folder } = await makeBooks();
    const { url, ledger, payouts } = await startEndpoint('slow-and-strict.py', folder);
    const args = ['--prepare', `echo "$ID" >> ${payouts}`, ...countIn(ledger)];
    const { code, wrong, less, unseen, trial } = await check(url, ...args);
    expect([code, wrong, less, unseen]).toEqual([0, [], ['other-amount', 'undocumented'], []]);
    expect(trial('unbookable')?.notes).toEqual([expect.stringContaining('data.id is missing')]);
  });

  test('a refund for each concurrent copy of a failure is wrong, although one copy after the other is not', async () => {
    const { folder } = await makeBooks();
    const { url, ledger } = await startEndpoint('refund-race.py', folder);
    const { code, wrong } = await check(url, ...countIn(ledger));
    expect([code, wrong]).toEqual([1, ['failed-burst']]);
  });
});
