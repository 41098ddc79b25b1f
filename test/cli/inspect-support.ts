import { mkdtemp, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Redis } from 'ioredis';
import { inject, onTestFinished } from 'vitest';
import {
  postgresStore,
  transferCallbackListener,
  transferCallbackReceiver,
  type CallbackStore,
} from 'transfer-callbacks';
import { transferClient } from 'transfer-callbacks/client';
import { startSandbox } from '../sandbox/support.js';
import { keepRecords } from '../support/kept.js';
import { startPostgres, type PostgresServer } from '../support/postgres.js';
import { startRedis, type RedisServer } from '../support/redis.js';
import { serve } from '../support/serve.js';
import { root, start, type Surroundings } from './support.js';

/** Starts both stores, for the tests of one file. */
export async function startServers(): Promise<[RedisServer, PostgresServer]> {
  const [redis, postgres] = await Promise.all([startRedis(), startPostgres()]);
  await postgresStore(postgres.pool()).migrate();
  return [redis, postgres];
}

export function connectRedis({ url }: RedisServer): Redis {
  const client = new Redis(url);
  onTestFinished(() => {
    client.disconnect();
  });
  return client;
}

/** The environment of a pod: a service with its keys, and a store. */
export type Pod = Record<string, string>;

/** The sandbox's service, and an app whose receiver has `store`. */
export async function startApp(store: CallbackStore<unknown>) {
  const done = (): void => undefined;
  const receiver = transferCallbackReceiver({ store, onSuccess: done, onFailed: done, logger: false });
  const { url, close } = await serve(transferCallbackListener({ receiver }));
  onTestFinished(close);
  const sandbox = await startSandbox({ finalAfterMs: 0, seed: crypto.getRandomValues(new Uint32Array(1))[0] });
  const client = transferClient({ baseUrl: sandbox.baseUrl, ...sandbox.keys.valid });
  return {
    receiver,
    baseUrl: sandbox.baseUrl,
    /** Waits until the store tells since when it keeps records. */
    keep: () => keepRecords(receiver),
    env: {
      TRANSFER_SERVICE_URL: sandbox.baseUrl,
      TRANSFER_API_KEY: 'sandbox-key',
      TRANSFER_API_SECRET: 'sandbox-secret',
    },
    /** Creates a transfer, waits until its callback was delivered, and resolves with its id. */
    transfer: async (externalId: string, callbackUrl = url): Promise<string> => {
      await client.createTransfer({ callbackUrl, externalId, amount: 250 });
      await sandbox.idle();
      return String(sandbox.transfers().find((each) => each.externalId === externalId)?.id);
    },
  };
}

export const inspect = (env: Pod, args: readonly string[], surroundings: Surroundings = {}) =>
  start(['inspect', ...args], { ...surroundings, env: { NO_COLOR: '1', ...env } }).ended;

/**
 * Makes the folder of an app with this `transfer-callbacks.config` file, in which `transfer-callbacks` is what this run
 * has built. Returns its path.
 */
export async function folderOf(config: string, name = 'transfer-callbacks.config.mjs'): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'transfer-callbacks-app-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  const built = config.replaceAll(/'transfer-callbacks(?:\/(\w+))?'/g, (_, entry: string | undefined) =>
    JSON.stringify(join(dirname(inject('cli')), `${entry ?? 'index'}.js`)),
  );
  await writeFile(join(folder, name), built);
  return folder;
}

/** Makes a folder that has only this package of all that this repository has. */
export async function folderWith(name: string | undefined): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'transfer-callbacks-inspect-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, 'node_modules'));
  if (name !== undefined) await symlink(join(root, 'node_modules', name), join(folder, 'node_modules', name));
  return folder;
}

/** Replaces the packages of an app's folder by one that throws while it is loaded. */
export async function breakDriver(folder: string, name: string): Promise<void> {
  const modules = join(folder, 'node_modules');
  await rm(modules);
  await mkdir(join(modules, name), { recursive: true });
  await writeFile(join(modules, name, 'index.js'), 'throw new Error("the native module is missing");');
}
