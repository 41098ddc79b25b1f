import { isDeepStrictEqual } from 'node:util';
import { RetryLater } from 'transfer-callbacks';
import { reconcileTransfers, type TransferClient } from 'transfer-callbacks/client';
import type { TransferSandbox } from 'transfer-callbacks/sandbox';
import { deliver, transferFailed } from 'transfer-callbacks/testing';
import type { Merchant } from './merchant.js';
import { startTwoProcesses } from './two-processes.js';

/** What a row of the table shows of a transfer: what is expected of it, and what came of it. */
export interface Cells {
  readonly attempts: string;
  readonly runs: string;
  readonly outcomes: string;
}

export interface Stage {
  readonly merchant: Merchant;
  readonly service: TransferSandbox;
  readonly client: TransferClient;
}

export interface Scene {
  readonly transfer: string;
  /** Whether it is made up by a sender that does not know the token. */
  readonly isForged?: true;
  readonly expected: Cells;
  /** Resolves with the response to each attempt: a status, or why there was none. */
  play(stage: Stage): Promise<(number | string)[]>;
}

export const scenes: readonly Scene[] = [
  {
    transfer: 'A success',
    expected: { attempts: '200', runs: 'paid 15,000', outcomes: 'processed' },
    play: (stage) => create(stage, 'success', { amount: 15_000 }),
  },
  {
    transfer: 'A failure',
    expected: { attempts: '200', runs: 'refunded 900', outcomes: 'processed' },
    play: (stage) => create(stage, 'failed'),
  },
  {
    transfer: 'A bank account',
    expected: { attempts: '200', runs: 'wired 250,000', outcomes: 'processed' },
    play: (stage) => create(stage, 'success', { amount: 250_000, paymentMethod: 'bank' }),
  },
  {
    transfer: 'Handler fails once',
    expected: { attempts: '500, 200', runs: 'error, paid 900', outcomes: 'handler_failed, processed' },
    play: (stage) => {
      stage.merchant.failOnce(new Error('The database is down'));
      return create(stage, 'success');
    },
  },
  {
    transfer: 'Handler wants later',
    expected: { attempts: '503, 200', runs: 'later, paid 900', outcomes: 'retry_later, processed' },
    play: (stage) => {
      stage.merchant.failOnce(new RetryLater('The books are closed for the night'));
      return create(stage, 'success');
    },
  },
  {
    transfer: 'Ten copies together',
    expected: { attempts: '10 × 200', runs: 'paid 900', outcomes: 'processed, 9 × duplicate' },
    play: (stage) => create(stage, 'burst'),
  },
  {
    transfer: 'Process killed',
    expected: { attempts: 'none, 200', runs: 'died, paid 900', outcomes: 'processed' },
    play: async (stage) => {
      const { runs, outcomes } = stage.merchant;
      const processes = await startTwoProcesses(({ run, outcome }) => {
        if (run !== undefined) runs.push(run);
        if (outcome !== undefined) outcomes.push(outcome);
      });
      const attempts = await create(stage, 'success', { callbackUrl: processes.url });
      await processes.close();
      return attempts.map((attempt) => (typeof attempt === 'string' ? 'none' : attempt));
    },
  },
  {
    transfer: 'Two attempts lost',
    expected: { attempts: '2 × lost, 200', runs: 'paid 900', outcomes: 'processed' },
    play: (stage) => create(stage, 'lost-attempts'),
  },
  {
    transfer: 'JSON cut short',
    expected: { attempts: '400, 200', runs: 'paid 900', outcomes: 'invalid, processed' },
    play: (stage) => create(stage, 'malformed'),
  },
  {
    transfer: 'A contradiction',
    expected: {
      attempts: '200, 4 × 422',
      runs: 'refunded 900',
      outcomes: 'processed, 4 × conflict',
    },
    play: (stage) => create(stage, 'flip'),
  },
  {
    transfer: 'A forgery',
    isForged: true,
    expected: { attempts: '4 × 401', runs: 'nothing', outcomes: '4 × unauthorized' },
    play: async ({ merchant }) => (await deliver(merchant.publicUrl, transferFailed())).responses,
  },
  {
    transfer: 'No callback',
    expected: { attempts: 'nothing', runs: 'paid 900', outcomes: 'processed' },
    play: async (stage) => {
      const attempts = await create(stage, 'no-callback');
      await reconcile(stage);
      return attempts;
    },
  },
  {
    transfer: 'Reconciled first',
    expected: { attempts: '200', runs: 'paid 900', outcomes: 'processed, duplicate' },
    play: async (stage) => {
      const attempts = create(stage, 'late-callback');
      // Until the transfer is final; its callback comes 600 ms later.
      while ((await reconcile(stage)) === 0);
      return attempts;
    },
  },
];

/** Creates a transfer, waits until the service has nothing more to say of it, and resolves with the responses to its attempts. */
async function create(stage: Stage, scenario: string, fields: object = {}): Promise<(number | string)[]> {
  const { merchant, service, client } = stage;
  merchant.externalId = `${scenario}-${crypto.randomUUID().slice(0, 8)}`;
  const { externalId, callbackUrl } = merchant;
  await client.createTransfer({ callbackUrl, externalId, amount: 900, currency: 'XAF', ...fields });
  await service.idle();
  return service.attempts
    .filter((attempt) => attempt.externalId === externalId)
    .map(({ response }) => ('status' in response ? response.status : response.error));
}

/** One pass over the one transfer that is open; resolves with how many it has found done. */
async function reconcile({ merchant, client }: Stage): Promise<number> {
  const pending = [{ id: merchant.externalId, createdAt: 0 }];
  const { processed, duplicate } = await reconcileTransfers({ client, receiver: merchant.receiver, pending });
  return processed + duplicate;
}

/** What came of a scene. */
export interface Observed extends Cells {
  /** How many attempts were made. */
  readonly made: number;
  /** How often the merchant acted on it. */
  readonly handled: number;
}

/** Plays a scene, and tells what the merchant and the service saw of it. */
export async function observe(scene: Scene, stage: Stage): Promise<Observed> {
  const { runs, outcomes } = stage.merchant;
  runs.length = 0;
  outcomes.length = 0;
  const attempts = await scene.play(stage);
  // A duplicate may hear from the store that the other copy is settled before that one hears it itself.
  const inOrder = outcomes.toSorted((a, b) => Number(a === 'duplicate') - Number(b === 'duplicate'));
  const handled = runs.filter((run) => /^(paid|refunded|wired) /.test(run)).length;
  return {
    ...{ attempts: inWords(attempts), runs: inWords(runs), outcomes: inWords(inOrder) },
    ...{ made: attempts.length, handled },
  };
}

export function isAsDesigned({ expected }: Scene, { attempts, runs, outcomes }: Cells): boolean {
  return isDeepStrictEqual({ attempts, runs, outcomes }, expected);
}

/** `[500, 200, 200]` as `500, 2 × 200`. */
function inWords(entries: readonly (string | number)[]): string {
  const groups: { entry: string | number; count: number }[] = [];
  for (const entry of entries) {
    const last = groups.at(-1);
    if (last?.entry === entry) last.count += 1;
    else groups.push({ entry, count: 1 });
  }
  return groups.map(({ entry, count }) => (count > 1 ? `${count} × ${entry}` : entry)).join(', ') || 'nothing';
}
