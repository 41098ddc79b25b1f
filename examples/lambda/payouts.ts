import { Pool, type PoolClient } from 'pg';
import { pgStore, transferCallbackReceiver, type HandlerContext } from 'transfer-callbacks/web';
import { transferService } from 'transfer-callbacks/client';

type Tx = HandlerContext<PoolClient>['tx'];
const { SERVICE_URL = '', TRANSFER_API_KEY: apiKey = '', TRANSFER_API_SECRET: apiSecret = '' } = process.env;

async function close(payout: string, column: 'paid_at' | 'failed_at', tx: Tx) {
  const { rowCount } = await tx.query(`UPDATE payouts SET ${column} = now() WHERE id = $1`, [payout]);
  if (rowCount !== 1) throw new Error(`No payout ${payout}`);
}

export const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 4 });
export const receiver = transferCallbackReceiver({
  service: transferService({ baseUrl: SERVICE_URL, apiKey, apiSecret }),
  store: pgStore(pool), // run its `migrate()` when you deploy
  handlerTimeoutMs: 15_000, // give the function a limit of 60 s
  onSuccess: ({ data }, { tx }) => close(data.externalId, 'paid_at', tx),
  onFailed: ({ data }, { tx }) => close(data.externalId, 'failed_at', tx),
});
