// A merchant's process with the lines of docs/stores.md: no listener on the pool.
import { Pool } from 'pg';
import { postgresStore, transferCallbackReceiver } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';

/** What the app is to do. */
export interface PostgresAppOptions {
  readonly url: string;
  /** The id of the callback that it receives on each message. */
  readonly id: string;
  /** Says `handling` from within the handler, and never returns from it. */
  readonly hang?: boolean;
  readonly idleTimeoutMs?: number;
}

const { url, id, hang, idleTimeoutMs } = JSON.parse(process.env.POSTGRES_APP ?? '{}') as PostgresAppOptions;
const store = postgresStore(new Pool({ connectionString: url, max: 20 }), { idleTimeoutMs });
await store.migrate();

const receiver = transferCallbackReceiver({
  store,
  logger: false,
  async onSuccess({ data }, { tx }) {
    await tx.query('SELECT $1::text', [data.externalId]);
    if (hang !== true) return;
    process.send?.('handling');
    await new Promise((resolve) => setTimeout(resolve, 1_000_000));
  },
  onFailed: () => undefined,
});

process.on('message', () => {
  void receiver.receive(transferSucceeded({ id, externalId: id })).then(({ outcome }) => process.send?.(outcome));
});
process.once('disconnect', () => process.exit());
process.send?.('ready');
