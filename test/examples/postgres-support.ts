import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Pool, PoolClient } from 'pg';
import type { HandlerContext, TransferCallback, TransferCallbackReceiver } from 'transfer-callbacks';
import { receiverOn, type PostgresServer } from '../support/postgres.js';
import { root } from '../docs/pages.js';

export type Handler = (callback: TransferCallback, context: HandlerContext<PoolClient>) => Promise<void>;

/** Runs an example as a user would, to its end; it also creates its table. */
export function runOn(server: PostgresServer, example: string): Promise<{ stdout: string; stderr: string }> {
  return promisify(execFile)(process.execPath, ['--import', 'tsx', `examples/${example}`], {
    cwd: root,
    env: { ...process.env, DATABASE_URL: server.url },
  });
}

/** A receiver that gives each callback to this handler. */
export function handlingWith(pool: Pool, handler: Handler): TransferCallbackReceiver<TransferCallback, PoolClient> {
  return receiverOn(pool, { onSuccess: handler, onFailed: handler });
}
