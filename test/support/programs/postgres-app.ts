// A merchant's process with the lines of docs/stores.md: no listener on the pool.
import { once } from 'node:events';
import { Pool } from 'pg';
import { pgStore, transferCallbackReceiver } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { readAppOptions } from './app.js';

/** What the app is to do. */
export interface PostgresAppOptions {
  readonly url: string;
  /** The id of the callback that it receives on each message. */
  readonly id: string;
  /** Says `handling` from within the handler, which goes on at the next message. */
  readonly hang?: boolean;
  readonly idleTimeoutMs?: number;
}

const { url, id, hang, idleTimeoutMs } = readAppOptions() as PostgresAppOptions;
const store = pgStore(new Pool({ connectionString: url, max: 20 }), { idleTimeoutMs });
await store.migrate();

const receiver = transferCallbackReceiver({
  store,
  logger: false,
  async onSuccess({ data }, { tx }) {
    await tx.query('INSERT INTO ledger VALUES ($1, $2)', [data.id, 'from the app']);
    if (hang !== true) return;
    process.send?.('handling');
    await once(process, 'message');
  },
  onFailed: () => undefined,
});

let isReceiving = false;
process.on('message', () => {
  if (isReceiving) return;
  isReceiving = true;
  void receiver.receive(transferSucceeded({ id, externalId: id })).then(({ outcome }) => {
    isReceiving = false;
    process.send?.(outcome);
  });
});
process.once('disconnect', () => process.exit());
process.send?.('ready');
