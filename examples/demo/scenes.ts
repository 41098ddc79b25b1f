import { isDeepStrictEqual } from 'node:util';
import { RetryLater } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import type { Merchant } from './merchant.js';
import { sendCallback, type Attempt } from './service.js';

/** What a row of the table shows of a delivery: what is expected of it, and what came of it. */
export interface Cells {
  readonly attempts: string;
  readonly runs: string;
  readonly outcomes: string;
}

export interface Scene {
  readonly delivery: string;
  readonly expected: Cells;
  play(merchant: Merchant): Promise<Attempt[]>;
}

export const scenes: readonly Scene[] = [
  {
    delivery: 'A payout that succeeded',
    expected: { attempts: '200', runs: 'paid 15,000 XAF, wallet', outcomes: 'processed' },
    play: ({ callbackUrl }) => sendCallback(callbackUrl, transferSucceeded()),
  },
  {
    delivery: 'A payout that failed',
    expected: { attempts: '200', runs: 'refunded: Wallet closed', outcomes: 'processed' },
    play: ({ callbackUrl }) => sendCallback(callbackUrl, transferFailed({ failureReason: 'Wallet closed' })),
  },
  {
    delivery: 'A payout to a bank account',
    expected: { attempts: '200', runs: 'paid 250,000 XAF, bank', outcomes: 'processed' },
    play: ({ callbackUrl }) => sendCallback(callbackUrl, transferSucceeded({ paymentMethod: 'bank', amount: 250_000 })),
  },
  {
    delivery: 'The handler fails at first',
    expected: { attempts: '500, 200', runs: 'error, paid 900 XAF, wallet', outcomes: 'handler_failed, processed' },
    play: ({ callbackUrl, failOnce }) => {
      failOnce(new Error('The database is down'));
      return sendCallback(callbackUrl, transferSucceeded({ amount: 900 }));
    },
  },
  {
    delivery: 'The handler asks for later',
    expected: { attempts: '503, 200', runs: 'later, paid 900 XAF, wallet', outcomes: 'retry_later, processed' },
    play: ({ callbackUrl, failOnce }) => {
      failOnce(new RetryLater('The books are closed for the night'));
      return sendCallback(callbackUrl, transferSucceeded({ amount: 900 }));
    },
  },
  {
    delivery: 'Five copies at the same time',
    expected: { attempts: '5 × 200', runs: 'paid 40,000 XAF, wallet', outcomes: 'processed, 4 × duplicate' },
    play: async ({ callbackUrl }) => {
      const callback = transferSucceeded({ amount: 40_000 });
      const copies = await Promise.all(Array.from({ length: 5 }, () => sendCallback(callbackUrl, callback)));
      return copies.flat();
    },
  },
  {
    delivery: 'A success, then a failure',
    expected: { attempts: '200, 4 × 422', runs: 'paid 15,000 XAF, wallet', outcomes: 'processed, 4 × conflict' },
    play: async ({ callbackUrl }) => {
      const success = transferSucceeded();
      const failure = transferFailed({ id: success.data.id, externalId: success.data.externalId });
      const attempts = await sendCallback(callbackUrl, success);
      return attempts.concat(await sendCallback(callbackUrl, failure));
    },
  },
  {
    delivery: 'A forgery, without the token',
    expected: { attempts: '4 × 401', runs: 'nothing', outcomes: '4 × unauthorized' },
    play: ({ publicUrl }) => sendCallback(publicUrl, transferFailed()),
  },
  {
    delivery: 'A callback that is cut short',
    expected: { attempts: '4 × 400', runs: 'nothing', outcomes: '4 × invalid' },
    play: ({ callbackUrl }) => sendCallback(callbackUrl, JSON.stringify(transferSucceeded()).slice(0, -20)),
  },
];

/** Plays a scene, and tells what the merchant and the service saw of it. */
export async function observe(scene: Scene, merchant: Merchant): Promise<Cells> {
  merchant.runs.length = 0;
  merchant.outcomes.length = 0;
  const attempts = await scene.play(merchant);
  return { attempts: inWords(attempts), runs: inWords(merchant.runs), outcomes: inWords(merchant.outcomes) };
}

export function isAsDesigned({ expected }: Scene, observed: Cells): boolean {
  return isDeepStrictEqual(observed, expected);
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
