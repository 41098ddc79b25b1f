import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  memoryStore,
  RetryLater,
  transferCallbackListener,
  transferCallbackReceiver,
  urlToken,
  type TransferCallback,
  type TransferCallbackReceiver,
} from 'transfer-callbacks/node';

/** A merchant's app that runs, and what it has done. */
export interface Merchant {
  /** The address without its token, as a forger knows it. */
  readonly publicUrl: string;
  /** The address that the service is given. */
  readonly callbackUrl: string;
  /** The receiver of the callbacks, for reconciliation. */
  readonly receiver: TransferCallbackReceiver;
  /** What each run of a handler did, in order. */
  readonly runs: string[];
  /** How each delivery ended, in order. */
  readonly outcomes: string[];
  /** Makes the next run of a handler throw `error`. */
  readonly failOnce: (error: Error) => void;
  readonly close: () => void;
}

/** How long a handler takes, in milliseconds: copies that come together meet it while it runs. */
const handlingMs = 20;

/** Starts a merchant's app on a free port of this machine. */
export async function startMerchant(): Promise<Merchant> {
  const runs: string[] = [];
  const outcomes: string[] = [];
  let failure: Error | undefined;

  async function book(what: string, { amount }: TransferCallback['data']): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, handlingMs));
    if (failure !== undefined) {
      const error = failure;
      failure = undefined;
      runs.push(error instanceof RetryLater ? 'later' : 'error');
      throw error;
    }
    runs.push(`${what} ${amount.toLocaleString('en')}`);
  }

  const receiver = transferCallbackReceiver({
    store: memoryStore(),
    onSuccess: ({ data }) => book(data.paymentMethod === 'bank' ? 'wired' : 'paid', data),
    onFailed: ({ data }) => book('refunded', data),
    onOutcome({ outcome }) {
      outcomes.push(outcome);
    },
    logger: false,
  });
  const token = crypto.randomUUID();
  const server = createServer(transferCallbackListener({ receiver, verify: urlToken(token) })).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const publicUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/callbacks/transfers`;
  return {
    publicUrl,
    callbackUrl: `${publicUrl}/${token}`,
    receiver,
    runs,
    outcomes,
    failOnce(error) {
      failure = error;
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
