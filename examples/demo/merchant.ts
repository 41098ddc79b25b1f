import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import express from 'express';
import {
  RetryLater,
  transferCallbackReceiver,
  transferCallbackRouter,
  urlToken,
  type CallbackStore,
  type TransferCallback,
  type TransferCallbackReceiver,
} from 'transfer-callbacks';

export interface Merchant {
  /** Without the token: for a sender that does not know it. */
  readonly publicUrl: string;
  /** What the service was given. */
  readonly callbackUrl: string;
  /** For reconciliation: the one that the router gives its callbacks to. */
  readonly receiver: TransferCallbackReceiver;
  /** The transfer that was created last. */
  externalId: string;
  /** What each run of a handler did, in order. */
  readonly runs: string[];
  /** How each delivery ended, in order. */
  readonly outcomes: string[];
  /** Makes the next run of a handler throw `error`. */
  readonly failOnce: (error: Error) => void;
  readonly close: () => void;
}

const amounts = new Intl.NumberFormat('en');

/** Starts a merchant's app on a free port. */
export async function startMerchant(store: CallbackStore): Promise<Merchant> {
  const runs: string[] = [];
  const outcomes: string[] = [];
  let failure: Error | undefined;

  async function book(what: string, { amount }: TransferCallback['data']): Promise<void> {
    await setTimeout(20);
    if (failure !== undefined) {
      const error = failure;
      failure = undefined;
      runs.push(error instanceof RetryLater ? 'later' : 'error');
      throw error;
    }
    runs.push(`${what} ${amounts.format(amount)}`);
  }

  const receiver = transferCallbackReceiver({
    store,
    onSuccess: ({ data }) => book(data.paymentMethod === 'bank' ? 'wired' : 'paid', data),
    onFailed: ({ data }) => book('refunded', data),
    onOutcome({ outcome }) {
      outcomes.push(outcome);
    },
    logger: false,
    retentionMs: 120_000, // So that a Redis of yours keeps nothing of this for long.
  });
  const token = randomUUID();
  const app = express();
  app.use('/callbacks/transfers', transferCallbackRouter({ receiver, verify: urlToken(token) }));

  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const publicUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/callbacks/transfers`;

  return {
    publicUrl,
    callbackUrl: `${publicUrl}/${token}`,
    receiver,
    externalId: '',
    runs,
    outcomes,
    failOnce: (error) => {
      failure = error;
    },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
