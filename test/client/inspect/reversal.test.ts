// What became of a transfer of a service that reverses successes: its refund has a record of its own.
import { describe, expect, test } from 'vitest';
import { memoryStore, type CallbackStore } from 'transfer-callbacks';
import { inspectTransfer, type TransferInspection } from 'transfer-callbacks/client';
import { later } from '../../core/support.js';
import { recordingLogger } from '../../support/helpers/logger.js';
import { announced, type Status } from '../../support/helpers/reversing.js';
import { startPayouts, type Known } from '../service/support.js';

/** Inspects a transfer after these callbacks. The service responds with `known`. */
async function inspectAfter(known: Known, callbacks: readonly Status[], store: CallbackStore = memoryStore()) {
  const { receiver } = await startPayouts({ a: known }, store);
  for (const status of callbacks) await receiver.receive(announced(status, 'a'));
  return { receiver, ...(await inspectTransfer({ receiver, id: 'a' })) };
}

describe('the verdict', () => {
  test.each<[known: Known, callbacks: Status[], verdict: TransferInspection['verdict']]>([
    ['SUCCESS', [], 'missed'],
    ['SUCCESS', ['SUCCESS'], 'handled'],
    ['SUCCESS', ['FAILED'], 'conflict'],
    ['SUCCESS', ['REVERSED'], 'conflict'],
    ['SUCCESS', ['SUCCESS', 'REVERSED'], 'conflict'],
    ['FAILED', [], 'missed'],
    ['FAILED', ['SUCCESS'], 'conflict'],
    ['FAILED', ['FAILED'], 'handled'],
    ['FAILED', ['REVERSED'], 'handled'],
    ['FAILED', ['SUCCESS', 'REVERSED'], 'handled'],
    ['REVERSED', [], 'missed'],
    ['REVERSED', ['SUCCESS'], 'missed'],
    ['REVERSED', ['FAILED'], 'handled'],
    ['REVERSED', ['REVERSED'], 'handled'],
    ['REVERSED', ['SUCCESS', 'REVERSED'], 'handled'],
    ['payout.returning', [], 'open'],
    ['payout.returning', ['SUCCESS'], 'unfounded'],
    ['payout.returning', ['SUCCESS', 'REVERSED'], 'unfounded'],
    [[404, ''], [], 'unknown'],
    [[404, ''], ['SUCCESS', 'REVERSED'], 'undecided'],
    [[401, ''], ['SUCCESS'], 'undecided'],
  ])('if the service reports %s after callbacks of %j is %s', async (known, callbacks, verdict) => {
    const inspection = await inspectAfter(known, callbacks);
    expect(inspection.verdict).toBe(verdict);
    expect(`${inspection.meaning} ${inspection.advice}`).not.toMatch(/final words|readTransaction|§/);
    const isReversed = callbacks.includes('REVERSED') || callbacks.includes('FAILED');
    if (isReversed) expect(inspection.record).toMatchObject({ reversal: { state: 'handled' } });
    else expect(inspection.record).not.toHaveProperty('reversal');
  });

  test('is that of the reversal alone once the record of the success is gone', async () => {
    const store = memoryStore();
    const { receiver } = await startPayouts({ a: 'REVERSED' }, store, { logger: recordingLogger() });
    await receiver.receive(announced('SUCCESS', 'a'));
    await receiver.receive(announced('REVERSED', 'a'));
    const { record } = await inspectTransfer({ receiver, id: 'a' });
    if (record.state !== 'handled') expect.fail(record.state);
    await receiver.forget('a', { fingerprint: record.fingerprint, by: 'ops', reason: 'test' });
    const inspection = await inspectTransfer({ receiver, id: 'a' });
    expect(inspection).toMatchObject({ verdict: 'handled', record: { state: 'free', reversal: { state: 'handled' } } });
  });

  test('is conflict if the money is not the same', async () => {
    const inspection = await inspectAfter([200, announced('REVERSED', 'a', { amount: 99 })], ['SUCCESS']);
    expect(inspection).toMatchObject({ verdict: 'conflict' });
    expect(inspection.advice).toMatch(
      /^Inspect it again in some minutes, because a query may lag\. If nothing changes, tr/,
    );
    const other = await inspectAfter([200, announced('REVERSED', 'a', { currency: 'XOF' })], ['SUCCESS', 'REVERSED']);
    expect(other).toMatchObject({ verdict: 'conflict' });
    const same = await inspectAfter([200, announced('REVERSED', 'a', { amount: '100.00' })], ['SUCCESS', 'REVERSED']);
    expect(same).toMatchObject({ verdict: 'handled' });
  });

  test('is in_progress while the handler of a reversal runs', async () => {
    const [begun, goOn] = [later(), later()];
    const handle = async (status: Status): Promise<void> => {
      if (status !== 'REVERSED') return;
      begun.resolve();
      await goOn.promise;
    };
    const { receiver } = await startPayouts({ a: 'REVERSED' }, memoryStore(), { handle });
    await receiver.receive(announced('SUCCESS', 'a'));
    const reversal = receiver.receive(announced('REVERSED', 'a'));
    await begun.promise;
    const inspection = await inspectTransfer({ receiver, id: 'a' });
    expect(inspection).toMatchObject({
      verdict: 'in_progress',
      record: { state: 'handled', reversal: { state: 'claimed' }, here: { sinceMs: expect.any(Number) as number } },
      advice: expect.stringMatching(/^Wait \d+ s, and inspect it again/) as string,
    });
    goOn.resolve();
    expect(await reversal).toMatchObject({ outcome: 'processed' });
  });

  test('is undecided if the record of the reversal cannot be read as facts', async () => {
    const { options } = (await startPayouts({ a: 'REVERSED' })).receiver;
    const reversal = { state: 'handled', fingerprint: 'facts of a store of your own' } as const;
    const inspect = () => Promise.resolve({ state: 'handled' as const, fingerprint: '["SUCCESS"]', reversal });
    const inspection = await inspectTransfer({ id: 'a', receiver: { options, inspect } });
    expect(inspection).toMatchObject({ verdict: 'undecided' });
  });
});

describe('the advice for a defined service', () => {
  test('tells that the reversal was missed', async () => {
    const { meaning, advice } = await inspectAfter('REVERSED', ['SUCCESS']);
    expect(meaning).toBe('The success of the transfer was handled, and its reversal was not.');
    expect(advice).toMatch(
      /^Reconcile it now, or leave it to the next reconciliation of `paid`\. But if the store may/,
    );
  });

  test('takes a state that `states` declares for open by its word, even one that reads as final', async () => {
    const inspection = await inspectAfter('payout.returning', ['SUCCESS']);
    expect(inspection).toMatchObject({
      meaning: 'The handler has succeeded, but the service reports the status payout.returning, which is not final.',
      advice: expect.stringMatching(
        /^Inspect it again .* on its way back: wait for its end\. .* may have been forged: .*contact the payout service, .*\.$/,
      ) as string,
      service: { state: 'open', seemsFinal: false },
    });
    expect((await inspectAfter('payout.returning', [])).advice).toMatch(
      /^Wait.* older than a day, contact the payout service\.$/,
    );
  });

  test('shows what the service responds, and its callback, which the receiver takes', async () => {
    const { receiver, service } = await inspectAfter('REVERSED', ['SUCCESS']);
    if (service.state !== 'final') expect.fail(service.state);
    expect(service).toMatchObject({
      event: 'transfer.reversed',
      transaction: { id: 'a', externalId: 'payout-a', status: 'payout.returned', amount: 100, currency: 'XAF' },
    });
    expect(await receiver.receive(service.callback)).toMatchObject({ outcome: 'processed' });
    expect(await inspectTransfer({ receiver, id: 'a' })).toMatchObject({ verdict: 'handled' });
  });
});
