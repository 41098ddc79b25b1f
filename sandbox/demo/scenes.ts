import { reconcileTransfer, type TransferService } from 'transfer-callbacks/client';
import { RetryLater } from 'transfer-callbacks/node';
import type { TransferSandbox } from 'transfer-sandbox';
import { attemptCallback, type AttemptResponse } from '../src/attempt/attempt.js';
import { inWords } from '../src/cli/in-words.js';
import type { TransferScenario } from '../src/service/scenarios.js';
import type { Merchant } from './merchant.js';

/** The three columns of a row: the responses to the attempts, what the handlers did, how the deliveries ended. */
export type Cells = readonly [attempts: string, runs: string, outcomes: string];

interface Stage {
  readonly merchant: Merchant;
  readonly sandbox: TransferSandbox;
  readonly client: TransferService;
}

/** One transfer, or one forgery, and what should come of it. */
export interface Scene {
  readonly title: string;
  readonly expected: Cells;
  /** The scenario of its transfer; `undefined` for a forgery. */
  readonly scenario?: TransferScenario;
  readonly fields?: object;
  /** What the first run of the handler throws. */
  readonly failure?: Error;
  /** Whether the merchant asks for the transfer instead of waiting for its callback. */
  readonly isReconciled?: true;
}

export const scenes: readonly Scene[] = [
  {
    title: 'A success',
    expected: ['200', 'paid 15,000', 'processed'],
    scenario: 'success',
    fields: { amount: 15_000 },
  },
  { title: 'A failure', expected: ['200', 'refunded 900', 'processed'], scenario: 'failed' },
  {
    title: 'A bank account',
    expected: ['200', 'wired 250,000', 'processed'],
    scenario: 'success',
    fields: { amount: 250_000, paymentMethod: 'bank' },
  },
  {
    title: 'Handler fails once',
    expected: ['500, 200', 'error, paid 900', 'handler_failed, processed'],
    scenario: 'success',
    failure: new Error('The database is down'),
  },
  {
    title: 'Handler wants later',
    expected: ['503, 200', 'later, paid 900', 'retry_later, processed'],
    scenario: 'success',
    failure: new RetryLater('The books are closed for the night'),
  },
  { title: 'Ten copies together', expected: ['10 × 200', 'paid 900', 'processed, 9 × duplicate'], scenario: 'burst' },
  { title: 'Two attempts lost', expected: ['2 × lost, 200', 'paid 900', 'processed'], scenario: 'lost-attempts' },
  { title: 'JSON cut short', expected: ['400, 200', 'paid 900', 'invalid, processed'], scenario: 'malformed' },
  { title: 'A contradiction', expected: ['200, 4 × 422', 'refunded 900', 'processed, 4 × conflict'], scenario: 'flip' },
  { title: 'A forgery', expected: ['401', 'nothing', 'unauthorized'] },
  {
    title: 'No callback',
    expected: ['nothing', 'paid 900', 'processed'],
    scenario: 'no-callback',
    isReconciled: true,
  },
  {
    title: 'Reconciled first',
    expected: ['200', 'paid 900', 'processed, duplicate'],
    scenario: 'late-callback',
    isReconciled: true,
  },
];

/** Creates the transfer of a scene, and waits until the service makes no more attempts. */
async function pay({ title, scenario = 'success', fields, failure, isReconciled }: Scene, stage: Stage) {
  const { merchant, sandbox, client } = stage;
  const externalId = title.toLowerCase().replaceAll(' ', '-');
  if (failure !== undefined) merchant.failOnce(failure);
  sandbox.setScenario(externalId, scenario);
  const { callbackUrl, receiver } = merchant;
  await client.createTransfer({ callbackUrl, externalId, amount: 900, currency: 'XAF', ...fields });
  const asking = { ...receiver, options: { ...receiver.options, service: client } };
  // The callback comes 600 ms after the transfer is final, or never.
  for (let result = ''; isReconciled && result !== 'processed';) {
    ({ result } = await reconcileTransfer({ receiver: asking, id: externalId }));
  }
  await sandbox.idle();
  return sandbox.attempts.filter((attempt) => attempt.externalId === externalId).map(({ response }) => response);
}

/** Sends, without the token, the failure of the first transfer. */
async function forge({ merchant: { publicUrl }, sandbox }: Stage): Promise<AttemptResponse[]> {
  const data = { ...sandbox.transfers()[0]?.callback?.data, id: crypto.randomUUID(), status: 'FAILED' };
  return [await attemptCallback(publicUrl, JSON.stringify({ event: 'transfer.failed', data }))];
}

/** What came of a scene. */
export interface Observed {
  readonly cells: Cells;
  readonly isAsExpected: boolean;
}

/** Plays a scene, and returns what the merchant and the service saw of it. */
export async function observe(scene: Scene, stage: Stage): Promise<Observed> {
  const { runs, outcomes } = stage.merchant;
  runs.length = 0;
  outcomes.length = 0;
  const responses = await (scene.scenario === undefined ? forge(stage) : pay(scene, stage));
  // A copy may learn that the first delivery has handled before that one reports it.
  const inOrder = outcomes.toSorted((a, b) => Number(a === 'duplicate') - Number(b === 'duplicate'));
  const statuses = responses.map((response) => ('status' in response ? response.status : response.error));
  const cells = [inWords(statuses), inWords(runs), inWords(inOrder)] as const;
  return { cells, isAsExpected: cells.every((cell, column) => cell === scene.expected[column]) };
}
