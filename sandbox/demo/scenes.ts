import { reconcileTransfer, type TransferService } from 'transfer-callbacks/client';
import { RetryLater } from 'transfer-callbacks/node';
import type { TransferSandbox } from 'transfer-sandbox';
import { attemptCallback, type AttemptResponse } from '../src/attempt/attempt.js';
import { inWords } from '../src/cli/in-words.js';
import { judgeForgery } from '../src/service/forgery.js';
import { judgeAttempts, type TransferScenario } from '../src/service/scenarios.js';
import type { Merchant } from './merchant.js';

/** The three columns of a row: the responses to the attempts, what the handlers did, how the deliveries ended. */
export type Cells = readonly [attempts: string, runs: string, outcomes: string];

interface Stage {
  readonly merchant: Merchant;
  readonly sandbox: TransferSandbox;
  readonly client: TransferService;
}

/** What a scene is played with. */
interface OnStage extends Stage {
  readonly title: string;
}

/** The externalId by which the console shows the transfer of a scene. */
const toId = (title: string): string => title.toLowerCase().replaceAll(' ', '-');

/** What the service saw of a scene. */
interface Played {
  /** The responses to the attempts. */
  readonly responses: AttemptResponse[];
  /** Whether they are those of a right endpoint, by the judge of the sandbox. */
  readonly isRight: boolean;
}

/** One transfer, or one forgery, and what should come of it. */
export interface Scene {
  readonly title: string;
  readonly expected: Cells;
  readonly isForged?: true;
  readonly play: (stage: OnStage) => Promise<Played>;
}

export const scenes: readonly Scene[] = [
  {
    title: 'A success',
    expected: ['200', 'paid 15,000', 'processed'],
    play: (stage) => pay(stage, 'success', { amount: 15_000 }),
  },
  {
    title: 'A failure',
    expected: ['200', 'refunded 900', 'processed'],
    play: (stage) => pay(stage, 'failed'),
  },
  {
    title: 'A bank account',
    expected: ['200', 'wired 250,000', 'processed'],
    play: (stage) => pay(stage, 'success', { amount: 250_000, paymentMethod: 'bank' }),
  },
  {
    title: 'Handler fails once',
    expected: ['500, 200', 'error, paid 900', 'handler_failed, processed'],
    play: (stage) => {
      stage.merchant.failOnce(new Error('The database is down'));
      return pay(stage, 'success');
    },
  },
  {
    title: 'Handler wants later',
    expected: ['503, 200', 'later, paid 900', 'retry_later, processed'],
    play: (stage) => {
      stage.merchant.failOnce(new RetryLater('The books are closed for the night'));
      return pay(stage, 'success');
    },
  },
  {
    title: 'Ten copies together',
    expected: ['10 × 200', 'paid 900', 'processed, 9 × duplicate'],
    play: (stage) => pay(stage, 'burst'),
  },
  {
    title: 'Two attempts lost',
    expected: ['2 × lost, 200', 'paid 900', 'processed'],
    play: (stage) => pay(stage, 'lost-attempts'),
  },
  {
    title: 'JSON cut short',
    expected: ['400, 200', 'paid 900', 'invalid, processed'],
    play: (stage) => pay(stage, 'malformed'),
  },
  {
    title: 'A contradiction',
    expected: ['200, 4 × 422', 'refunded 900', 'processed, 4 × conflict'],
    play: (stage) => pay(stage, 'flip'),
  },
  {
    title: 'A forgery',
    expected: ['401', 'nothing', 'unauthorized'],
    isForged: true,
    play: forge,
  },
  {
    title: 'No callback',
    expected: ['nothing', 'paid 900', 'processed'],
    play: async (stage) => {
      const played = await pay(stage, 'no-callback');
      await reconcile(stage);
      return played;
    },
  },
  {
    title: 'Reconciled first',
    expected: ['200', 'paid 900', 'processed, duplicate'],
    play: async (stage) => {
      const played = pay(stage, 'late-callback');
      // Until the transfer is final; its callback comes 600 ms later.
      let isFinal = false;
      while (!isFinal) isFinal = await reconcile(stage);
      return played;
    },
  },
];

/** Creates a transfer that is named after its scene, and waits until the service makes no more attempts. */
async function pay(
  { title, merchant: { callbackUrl }, sandbox, client }: OnStage,
  scenario: TransferScenario,
  fields: object = {},
): Promise<Played> {
  const externalId = toId(title);
  sandbox.setScenario(externalId, scenario);
  await client.createTransfer({ callbackUrl, externalId, amount: 900, currency: 'XAF', ...fields });
  await sandbox.idle();
  const attempts = sandbox.attempts.filter((attempt) => attempt.externalId === externalId);
  return {
    responses: attempts.map(({ response }) => response),
    isRight: judgeAttempts(scenario, attempts).passed,
  };
}

/** Asks the service for an open transfer. Resolves with whether it is final. */
async function reconcile({ title, merchant: { receiver }, client }: OnStage): Promise<boolean> {
  const { result } = await reconcileTransfer({
    receiver: { ...receiver, options: { ...receiver.options, service: client } },
    id: toId(title),
  });
  return result === 'processed' || result === 'duplicate';
}

/** Announces, without the token, that the first transfer has failed. */
async function forge({ merchant: { publicUrl: url }, sandbox }: Stage): Promise<Played> {
  const data = { ...sandbox.transfers()[0]?.callback?.data, id: crypto.randomUUID(), status: 'FAILED' };
  const body = JSON.stringify({ event: 'transfer.failed', data });
  const response = await attemptCallback(url, body);
  return {
    responses: [response],
    isRight: judgeForgery(response, { url, body, hasHeaders: false }, []).tone === 'good',
  };
}

/** What came of a scene. */
export interface Observed {
  readonly cells: Cells;
  readonly isAsExpected: boolean;
  readonly attempts: number;
  /** How often the merchant acted on it. */
  readonly handled: number;
}

/** Plays a scene, and returns what the merchant and the service saw of it. */
export async function observe(scene: Scene, stage: Stage): Promise<Observed> {
  const { runs, outcomes } = stage.merchant;
  runs.length = 0;
  outcomes.length = 0;
  const { responses, isRight } = await scene.play({ ...stage, title: scene.title });
  // A copy may learn that the first delivery has handled before that one reports it.
  const inOrder = outcomes.toSorted((a, b) => Number(a === 'duplicate') - Number(b === 'duplicate'));
  const statuses = responses.map((response) => ('status' in response ? response.status : response.error));
  const cells = [inWords(statuses), inWords(runs), inWords(inOrder)] as const;
  return {
    cells,
    isAsExpected: isRight && cells.every((cell, column) => cell === scene.expected[column]),
    attempts: responses.length,
    handled: runs.filter((run) => /^(?:paid|refunded|wired) /.test(run)).length,
  };
}
