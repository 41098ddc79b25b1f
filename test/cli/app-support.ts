// An app for the tests of the commands that read its configuration: on Redis, beside a sandbox of the service.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, inject, onTestFinished } from 'vitest';
import { redisStore, transferCallbackListener } from 'transfer-callbacks';
import { transferService } from 'transfer-callbacks/client';
import { receiverOf } from '../core/support.js';
import { startSandbox } from '../../sandbox/test/service/support.js';
import { serveForTest } from '../support/servers/serve-for-test.js';
import { startRedis, type RedisServer } from '../support/servers/redis.js';
import { connectForTest } from '../support/servers/redis-for-file.js';
import { runOnApp } from './in-process.js';
import { root, start, type Surroundings } from './support.js';

let server: Promise<RedisServer> | undefined;
afterAll(async () => (await server)?.stop());

/** The Redis of the test file, which starts when the first test needs it. */
export const findRedis = (): Promise<RedisServer> => (server ??= startRedis());

/** The handlers of a configuration unless a test has others: they print what they handle. */
const handlers = `
  onSuccess({ data }) { console.log('Handled ' + data.externalId); },
  onFailed({ data }) { console.log('Handled ' + data.externalId); },`;

/**
 * Starts the sandbox's service, and an app that receives its callbacks. `own` replaces the handlers in its
 * configuration.
 */
export async function startApp(own = handlers) {
  const prefix = `${crypto.randomUUID()}:`;
  const store = redisStore(connectForTest((await findRedis()).port), { prefix });
  const receiver = receiverOf({ store });
  const url = await serveForTest(transferCallbackListener({ receiver }));
  const sandbox = await startSandbox({ finalAfterMs: 0 });
  const client = transferService({ baseUrl: sandbox.baseUrl, ...sandbox.keys.valid });
  const config = await toConfig(prefix, sandbox.baseUrl, own);
  const cwd = await folderOf(config);
  return {
    config,
    cwd,
    store,
    receiver,
    /** Creates a transfer, waits until its callback was delivered, and resolves with its id. */
    transfer: async (externalId: string, callbackUrl = url): Promise<string> => {
      await client.createTransfer({ callbackUrl, externalId, amount: 250 });
      await sandbox.idle();
      return String(sandbox.transfers().find((each) => each.externalId === externalId)?.id);
    },
    inspect: (args: readonly string[], surroundings?: Surroundings) => inspect(args, { cwd, ...surroundings }),
    reconcile: (ids: readonly string[], surroundings?: Surroundings) => reconcile(ids, { cwd, ...surroundings }),
    startReconcile: (ids: readonly string[]) => startReconcile(ids, { cwd }),
  };
}

/** Runs `inspect` in the process of the test, without colours. */
export function inspect(args: readonly string[], surroundings: Surroundings) {
  return runOnApp(['inspect', ...args], withoutColours(surroundings));
}

/** Runs `reconcile` in the process of the test for these ids, without colours. */
export function reconcile(ids: readonly string[], surroundings: Surroundings, ...args: string[]) {
  return runOnApp(['reconcile', ...args], withoutColours({ stdin: toLines(ids), ...surroundings }));
}

/** Starts a process of `inspect`, without colours. */
export function startInspect(args: readonly string[], surroundings: Surroundings) {
  return start(['inspect', ...args], withoutColours(surroundings));
}

/** Starts a process of `reconcile` for these ids, without colours. */
export function startReconcile(ids: readonly string[], surroundings: Surroundings) {
  return start(['reconcile'], withoutColours({ stdin: toLines(ids), ...surroundings }));
}

const toLines = (ids: readonly string[]): string => ids.map((id) => `${id}\n`).join('');

const withoutColours = ({ env, ...surroundings }: Surroundings): Surroundings => ({
  ...surroundings,
  env: { NO_COLOR: '1', ...env },
});

/** The configuration of an app on Redis. It imports no Express, which each command would load. */
export const toConfig = async (prefix: string, baseUrl: string, own = handlers): Promise<string> => `
  import { Redis } from 'ioredis';
  import { redisStore, transferCallbackReceiver } from 'transfer-callbacks/node';
  import { transferService } from 'transfer-callbacks/client';
  const { SECRET: apiSecret = 'sandbox-secret' } = process.env;
  const service = transferService({ baseUrl: '${baseUrl}', apiKey: 'sandbox-key', apiSecret });
  export const receiver = transferCallbackReceiver({
    service,
    store: redisStore(new Redis('${(await findRedis()).url}'), { prefix: '${prefix}' }),
    logger: false,
    ${own}
  });`;

/**
 * Makes the folder of an app with this `transfer-callbacks.config` file, in which `transfer-callbacks` is what this run
 * has built. Returns its path.
 */
export async function folderOf(config: string, name = 'transfer-callbacks.config.mjs'): Promise<string> {
  const apps = join(root, '.test/apps');
  await mkdir(apps, { recursive: true });
  const folder = await mkdtemp(`${apps}/app-`);
  onTestFinished(() => rm(folder, { recursive: true }));
  const built = config.replaceAll(/'transfer-callbacks(?:\/(\w+))?'/g, (_, entry: string | undefined) =>
    JSON.stringify(join(dirname(inject('cli')), `${entry ?? 'index'}.js`)),
  );
  await writeFile(join(folder, name), built);
  return folder;
}
