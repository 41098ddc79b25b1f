// What the tests of the runbook share: a merchant's app, the service that calls it, and the runbook's commands as processes.
import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import type { Pool, PoolClient } from 'pg';
import {
  postgresStore,
  redisStore,
  transferCallbackListener,
  transferCallbackReceiver,
  urlToken,
  type CallbackStore,
  type ReceiverOptions,
  type TransferCallback,
} from 'transfer-callbacks';
import { reconcileTransfers, transferClient } from 'transfer-callbacks/client';
import type { TransferSandboxOptions } from 'transfer-callbacks/sandbox';
import { expect, onTestFinished } from 'vitest';
import { start } from '../cli/support.js';
import { registerMetrics } from '../metrics/support.js';
import { startSandbox } from '../sandbox/support.js';
import { keepRecords } from '../support/kept.js';
import { recordingLogger } from '../support/logger.js';
import { startPostgres } from '../support/postgres.js';
import { startRedis, type RedisServer } from '../support/redis.js';
import { serve } from '../support/serve.js';

export const secret = 'the-new-secret-of-the-url';

/** A store, and what a pod of its app has in the environment to find it. */
export interface Backend<Tx = undefined> {
  readonly store: CallbackStore<Tx>;
  readonly env: Record<string, string>;
}

/** Starts a Redis that keeps its data over a crash. */
export async function startRedisBackend(): Promise<Backend & { server: RedisServer; client: Redis }> {
  const server = await startRedis({ persistent: true });
  onTestFinished(() => server.stop());
  const client = new Redis(server.port, '127.0.0.1', { retryStrategy: () => 50, maxRetriesPerRequest: null });
  client.on('error', () => undefined); // The outcomes report it.
  onTestFinished(() => {
    client.disconnect();
  });
  return { store: redisStore(client), env: { REDIS_URL: server.url }, server, client };
}

/** Starts a PostgreSQL with the table of the store. `pool` is the app's, with its name. */
export async function startPostgresBackend(): Promise<Backend<PoolClient> & { pool: Pool }> {
  const server = await startPostgres();
  onTestFinished(() => server.stop());
  const pool = server.pool({ application_name: 'payouts' });
  const store = postgresStore(pool);
  await store.migrate();
  return { store, env: { DATABASE_URL: server.url }, pool };
}

export interface NightOptions<Tx> {
  /** The secrets that the app's URL accepts, and the one that the service calls it with. */
  readonly accepts?: readonly string[];
  readonly callsWith?: string;
  /** Default: a thousand times as fast as in real life. */
  readonly service?: TransferSandboxOptions;
  readonly receiver?: Partial<ReceiverOptions<TransferCallback, Tx>>;
}

/** Starts a merchant's app on the store of `backend`, and the service that calls it. */
export async function startNight<Tx>({ store, env }: Backend<Tx>, options: NightOptions<Tx> = {}) {
  const { accepts = [secret], callsWith = secret, service = { speed: 1_000 } } = options;
  const { series } = registerMetrics();
  const logger = recordingLogger();
  const booked: string[] = [];
  const book = ({ data }: TransferCallback): void => {
    booked.push(`${data.externalId} ${data.status}`);
  };
  const receiver = transferCallbackReceiver<TransferCallback, Tx>({
    store,
    onSuccess: book,
    onFailed: book,
    logger,
    inFlightWaitMs: 0,
    ...options.receiver,
  });
  onTestFinished(async () => {
    await receiver.close({ timeoutMs: 0 });
  });
  const { url, close } = await serve(transferCallbackListener({ receiver, verify: urlToken([...accepts]) }));
  onTestFinished(close);
  const sandbox = await startSandbox(service);
  const client = transferClient({ baseUrl: sandbox.baseUrl, ...sandbox.keys.valid });
  const callbackUrl = `${url}/${callsWith}`;
  return {
    receiver,
    url,
    callbackUrl,
    booked,
    lines: logger.lines,
    /** Waits until the store tells since when it keeps records, as after the `check` of a deploy. */
    keep: () => keepRecords(receiver),
    /** Creates a transfer, and does not wait for its callback. */
    create: (externalId: string) => client.createTransfer({ externalId, callbackUrl }),
    /** Creates a transfer, and waits until the service has made its last attempt. */
    async pay(externalId: string): Promise<void> {
      await client.createTransfer({ externalId, callbackUrl });
      await sandbox.idle();
    },
    /** Waits until the service has made its last attempt. */
    idle: () => sandbox.idle(),
    /** Returns the service's id of a transfer. */
    findId: (externalId: string): string =>
      sandbox.transfers().find((transfer) => transfer.externalId === externalId)?.id ?? expect.fail(externalId),
    statuses: () => sandbox.attempts.map(({ response }) => ('status' in response ? response.status : response.error)),
    reconcile: (id: string) =>
      reconcileTransfers({ client, receiver, pending: [{ id, createdAt: Date.now() }], minAgeMs: 0 }),
    async deliveries(outcome: string, source = 'http'): Promise<number> {
      return (await series()).get(`transfer_callbacks_deliveries_total{outcome="${outcome}",source="${source}"}`) ?? 0;
    },
    /** Runs a command of the runbook from a pod of the app, whose CALLBACK_URL is the one that the service calls. */
    async run(command: string, toUrl = callbackUrl): Promise<Printed> {
      const { code, out, err } = await start(command.split(' '), {
        env: {
          NO_COLOR: '1',
          CALLBACK_URL: toUrl,
          TRANSFER_SERVICE_URL: sandbox.baseUrl,
          TRANSFER_API_KEY: sandbox.keys.valid.apiKey,
          TRANSFER_API_SECRET: sandbox.keys.valid.apiSecret,
          ...env,
        },
      }).ended;
      expect(err).toBe('');
      return { code, out };
    },
  };
}

export interface Printed {
  readonly code: unknown;
  readonly out: string;
}

const runbook = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');

/** Returns the runbook's command to inspect `payout`, for `run`. */
export const toInspect = (payout: string): string => findCommand('inspect').replace('payout-8841', payout);

/** Returns the runbook's command to resend the callback of `payout`, for `run`. */
export const toResend = (payout: string): string => findCommand('resend').replace('payout-8841', payout);

/** Finds a command at the beginning of a line: the output of `inspect` shows one too, indented. */
function findCommand(name: string): string {
  const [, command] =
    new RegExp(`^(?:kubectl .* )?npx --no transfer-callbacks (${name} .*payout-8841)$`, 'm').exec(runbook) ?? [];
  return command ?? expect.fail(`docs/operations.md shows no command \`${name}\`.`);
}

/** Returns the verdict that `inspect` printed, and its exit code. */
export function readVerdict({ code, out }: Printed): [verdict: string | undefined, code: unknown] {
  return [/^ {2}verdict {3}(\w+):/m.exec(out)?.[1], code];
}
