// What the tests of the runbook share: a merchant's app, the service that calls it, and the runbook's commands as processes.
import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import type { Pool, PoolClient } from 'pg';
import {
  pgStore,
  redisStore,
  transferCallbackListener,
  transferCallbackReceiver,
  urlToken,
  type CallbackStore,
  type ReceiverOptions,
  type TransferCallback,
} from 'transfer-callbacks';
import { reconcileTransfers, transferClient } from 'transfer-callbacks/client';
import { expect, onTestFinished } from 'vitest';
import { folderOf } from '../cli/app-support.js';
import { start } from '../cli/support.js';
import { deliveries, registerMetrics } from '../metrics/support.js';
import { startSandbox } from '../../sandbox/test/service/support.js';
import { recordingLogger } from '../support/helpers/logger.js';
import { startPostgres } from '../support/servers/postgres.js';
import { startRedis, type RedisServer } from '../support/servers/redis.js';
import { serve } from '../support/servers/serve.js';
import type { TransferSandboxOptions } from '../../sandbox/src/service/options.js';

export const secret = 'the-new-secret-of-the-url';

/** A store, and the lines of a configuration file that make it. */
export interface Backend<Tx = undefined> {
  readonly store: CallbackStore<Tx>;
  readonly config: string;
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
  const config = `
    import { Redis } from 'ioredis';
    import { redisStore } from 'transfer-callbacks';
    const store = redisStore(new Redis('${server.url}').on('error', () => undefined));`;
  return { store: redisStore(client), config, server, client };
}

/** Starts a PostgreSQL with the table of the store. `pool` is the app's, with its name. */
export async function startPostgresBackend(): Promise<Backend<PoolClient> & { pool: Pool }> {
  const server = await startPostgres();
  onTestFinished(() => server.stop());
  const pool = server.pool({ application_name: 'payouts' });
  const store = pgStore(pool);
  await store.migrate();
  const config = `
    import { Pool } from 'pg';
    import { pgStore } from 'transfer-callbacks';
    const store = pgStore(new Pool({ connectionString: '${server.url}' }));`;
  return { store, config, pool };
}

export interface MerchantAppOptions<Tx> {
  /** The secret that the service calls the app with. Default: the one that its URL accepts. */
  readonly callsWith?: string;
  /** Default: a thousand times as fast as in real life. */
  readonly service?: TransferSandboxOptions;
  readonly receiver?: Partial<ReceiverOptions<TransferCallback, Tx>>;
  /** The handler in the configuration of the commands. Default: one that books. */
  readonly handler?: string;
}

const bookingHandler = "({ data }) => console.log(data.externalId + ' ' + data.status)";

/** Starts a merchant's app on the store of `backend`, and the service that calls it. */
export async function startMerchantApp<Tx>({ store, config }: Backend<Tx>, options: MerchantAppOptions<Tx> = {}) {
  const { callsWith = secret, service = { speed: 1_000 } } = options;
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
  const { url, close } = await serve(transferCallbackListener({ receiver, verify: urlToken(secret) }));
  onTestFinished(close);
  const sandbox = await startSandbox(service);
  const client = transferClient({ baseUrl: sandbox.baseUrl, ...sandbox.keys.valid });
  const callbackUrl = `${url}/${callsWith}`;
  const cwd = await folderOf(`${config}
    import { transferCallbackReceiver } from 'transfer-callbacks';
    import { transferClient } from 'transfer-callbacks/client';
    const { apiKey, apiSecret } = ${JSON.stringify(sandbox.keys.valid)};
    export const client = transferClient({ baseUrl: '${sandbox.baseUrl}', apiKey, apiSecret });
    const handle = ${options.handler ?? bookingHandler};
    export const receiver = transferCallbackReceiver({ store, onSuccess: handle, onFailed: handle, logger: false });
  `);
  return {
    receiver,
    url,
    callbackUrl,
    booked,
    lines: logger.lines,
    /** Creates a transfer, and does not wait for its callback. */
    create: (externalId: string) => client.createTransfer({ externalId, callbackUrl }),
    /** Creates a transfer, and waits until the service has made its last attempt. */
    async pay(externalId: string): Promise<void> {
      await client.createTransfer({ externalId, callbackUrl });
      await sandbox.idle();
    },
    /** Returns the service's id of a transfer. */
    findId: (externalId: string): string =>
      sandbox.transfers().find((transfer) => transfer.externalId === externalId)?.id ?? expect.fail(externalId),
    statuses: () => sandbox.attempts.map(({ response }) => ('status' in response ? response.status : response.error)),
    reconcile: (id: string) =>
      reconcileTransfers({ client, receiver, pending: [{ id, createdAt: Date.now() }], minAgeMs: 0 }),
    async deliveries(outcome: string, source = 'http'): Promise<number> {
      return (await series()).get(deliveries(outcome, source)) ?? 0;
    },
    /** Runs a command line of the runbook in a pod of the app. What its handler prints is booked. */
    async run(line: string): Promise<Printed> {
      const [, id = '', args = ''] =
        /^(?:echo (\S+) \| )?.*npx --no transfer-callbacks (.*)$/.exec(line) ?? expect.fail(line);
      const { code, out, err } = await start(args.split(' '), { cwd, stdin: id, env: { NO_COLOR: '1' } }).ended;
      booked.push(...err.split('\n').filter((printed) => printed !== ''));
      return { code, out };
    },
  };
}

export interface Printed {
  readonly code: unknown;
  readonly out: string;
}

const runbook = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');

/** Returns the runbook's line to inspect `payout`, for `run`. */
export const toInspect = (payout: string): string => findLine('inspect payout-8841', payout);

/** Returns the runbook's line to have `payout` handled, for `run`. */
export const toReconcile = (payout: string): string => findLine('reconcile', payout);

/** Finds a command at the beginning of a line: the output of `inspect` shows one too, indented. */
function findLine(command: string, payout: string): string {
  const lines = runbook
    .split('\n')
    .filter((line) => /^\S/.test(line) && line.endsWith(`npx --no transfer-callbacks ${command}`));
  const [line = expect.fail(`docs/operations.md shows no command \`${command}\`.`)] = lines;
  return line.replace('payout-8841', payout);
}

/** Returns the verdict that `inspect` printed, and its exit code. */
export function readVerdict({ code, out }: Printed): [verdict: string | undefined, code: unknown] {
  return [/^ {2}verdict {3}(\w+):/m.exec(out)?.[1], code];
}
