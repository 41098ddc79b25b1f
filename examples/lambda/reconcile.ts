import { reconcileTransfers, type PendingTransfer } from 'transfer-callbacks/client';
import { pool, receiver } from './payouts.js';

const open = `SELECT id, created_at AS "createdAt" FROM payouts WHERE paid_at IS NULL AND failed_at IS NULL ORDER BY created_at`;

export async function handler() {
  const { rows: pending } = await pool.query<PendingTransfer>(open);
  const report = await reconcileTransfers({ receiver, pending, signal: AbortSignal.timeout(50_000) });
  console.log(JSON.stringify(report));
  const isHealthy = report.stopped === undefined && report.failed === 0 && report.advice === undefined;
  if (!isHealthy) throw new Error('The run did not handle every transfer, or has advice.');
}
