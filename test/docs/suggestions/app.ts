// An app with one of each: what people have where an error of an option tells them to write other code.
import { createServer } from 'node:http';
import { metrics } from '@opentelemetry/api';
import { Redis } from 'ioredis';
import { createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import * as root from 'transfer-callbacks';
import * as client from 'transfer-callbacks/client';
import { openTelemetryMetrics, prometheusMetrics } from 'transfer-callbacks/metrics';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { deliver, transferSandbox } from 'transfer-sandbox';
import { keyPairs, toPem, toPrivatePem } from '../../http/verifiers/keys.js';

const { memoryStore, pgStore, redisStore, transferCallbackReceiver, transferCallbackRouter } = root;
const { defineService, inspectTransfer, reconcileTransfer, reconcileTransfers, transferService } = client;

export const redis = new Redis({ lazyConnect: true });
export const pool = new Pool({ max: 1 });
export const mysql = createPool('mysql://127.0.0.1:1/none');
export const sandbox = await transferSandbox({ console: false });

/** Closes everything that this file has opened. */
export async function closeApp(): Promise<void> {
  redis.disconnect();
  await pool.end();
  await mysql.end();
  await sandbox.close();
}

export const keys = { baseUrl: 'https://service.example', apiKey: 'key', apiSecret: 'secret' };
export const fetch = () => Promise.reject(new Error('There is no network.'));
export const service = transferService({ ...keys, fetch });
export const secret = 'a-secret-of-a-test';
export const unaskedOptions = {
  ...{ store: memoryStore(), logger: false as const },
  ...{ onSuccess: () => undefined, onFailed: () => undefined },
};
export const receiverOptions = { ...unaskedOptions, service };
export const receiver = transferCallbackReceiver(receiverOptions);
export const unasked = transferCallbackReceiver(unaskedOptions);
export const read = ({ state, id }: { state: string; id: string }) => ({ state, id, externalId: id });
export const states = { paid: 'SUCCESS', bounced: 'FAILED', returned: 'REVERSED', charged: 'OTHER' } as const;
/** A service that reverses payouts, sends other events and can be asked. */
export const reversingOptions = {
  ...{ ...receiverOptions, service: defineService({ read, states, query: () => undefined }) },
  ...{ onReversed: () => undefined, onOther: () => undefined, retentionMs: 86_400_000 },
};
export const reversing = transferCallbackReceiver(reversingOptions);
export const knex = { raw: () => undefined, transaction: () => undefined };
export const id = 'payout-1';
export const url = 'https://merchant.example';
export const publicKey = toPem(keyPairs.ed25519[0]);
export const privateKey = toPrivatePem(keyPairs.ed25519[0]);
export const hmac = { header: 'x-signature', secrets: secret };
export const signHmac = root.hmacSignature({ ...hmac, signed: '{x-id}.{body}' });
export const key = root.publicKeySignature({ header: 'x-signature', publicKeys: publicKey });
export const message = root.messageSignature({ url, publicKeys: publicKey });
export const aborted = AbortSignal.abort();
/** A pool without a database. */
export const noPool = { connect: () => Promise.reject(new Error('There is no database.')) };
export const transactional = { transactional: true, claim: () => Promise.reject(new Error('There is no database.')) };
export const server = createServer((_request, response) => {
  response.end();
});

export type Make = (options: object) => unknown;

/** Fails with the error of an outcome. */
export async function receive(options: object, from: root.TransferCallbackReceiver = receiver, callback: unknown = {}) {
  const outcome = await from.receive(callback, options);
  if ('error' in outcome && outcome.error instanceof Error) throw outcome.error;
}

/** Runs a handler on this context. */
export async function handle(run: (context: root.HandlerContext) => void): Promise<void> {
  const own = transferCallbackReceiver({
    ...receiverOptions,
    store: memoryStore(),
    onSuccess: (_callback, context) => {
      run(context);
    },
  });
  await receive({}, own, transferSucceeded());
}

/** Everything that takes options, with the other options that it requires. */
export const makers: readonly [name: string, make: Make][] = [
  ['transferCallbackReceiver', (options) => transferCallbackReceiver({ ...receiverOptions, ...options })],
  [
    'a receiver of refunds',
    (options) =>
      transferCallbackReceiver({ ...('service' in options ? receiverOptions : reversingOptions), ...options } as never),
  ],
  ['confirm', (confirm) => transferCallbackReceiver({ ...receiverOptions, confirm })],
  ['transferCallbackRouter', (options) => transferCallbackRouter({ ...receiverOptions, ...options })],
  ['transferCallbackRouter with a receiver', (options) => transferCallbackRouter({ receiver, ...options })],
  ['receive', (options) => receive(options)],
  ['receiver.close', (options) => transferCallbackReceiver(receiverOptions).close(options)],
  ['RetryLater', (options) => new root.RetryLater('The ledger is closed', options)],
  ['memoryStore', (options) => memoryStore(options)],
  ['redisStore', (options) => redisStore(redis, options)],
  ['pgStore', (options) => pgStore(pool, options)],
  ['knexStore', (options) => root.knexStore(knex, { dialect: 'postgres', ...options })],
  ['postgresJsStore', (options) => root.postgresJsStore({ unsafe: () => undefined, begin: () => undefined }, options)],
  ['store.prune', (options) => pgStore(noPool).prune(options as never)],
  ['transferService', (options) => transferService({ ...keys, ...options })],
  ['createTransfer', (options) => service.createTransfer({ callbackUrl: url }, { signal: aborted, ...options })],
  ['getTransaction', (options) => service.getTransaction(id, options)],
  ['defineService', (options) => defineService({ read, states, ...options } as never)],
  [
    'reconcileTransfers',
    (options) => {
      const reconciling = { receiver: 'paid' in options ? reversing : receiver, pending: [], ...options };
      return reconcileTransfers(reconciling as never);
    },
  ],
  // A signal that has aborted keeps both from asking the service.
  ['reconcileTransfer', (options) => reconcileTransfer({ receiver, id, signal: aborted, ...options })],
  ['inspectTransfer', (options) => inspectTransfer({ receiver, id, signal: aborted, ...options })],
  ['hmacSignature', (options) => root.hmacSignature({ ...hmac, ...options })],
  ['publicKeySignature', (options) => root.publicKeySignature({ ...hmac, publicKeys: publicKey, ...options })],
  ['messageSignature', (options) => root.messageSignature({ url, publicKeys: publicKey, ...options })],
  ['sign', (options) => signHmac.sign('{}', { headers: { 'x-id': '7' }, ...options })],
  ['sign by a key', (options) => key.sign('{}', { secret: privateKey, ...options })],
  ['sign a message', (options) => message.sign('{}', { secret: privateKey, ...options })],
  ['basicAuth', (options) => root.basicAuth({ username: 'service', password: secret, ...options })],
  ['deliver', (options) => deliver(server, '{}', options)],
  [
    'transferSandbox',
    async (options) => {
      const started = await transferSandbox({ console: false, ...options });
      await started.close();
    },
  ],
];

export const makerOf = new Map<string, Make>([
  ...makers,
  ['sqlStore', (options) => root.sqlStore({ dialect: 'postgres', query: () => undefined, ...options } as never)],
  ['request', (request) => service.createTransfer(request as { callbackUrl: string }, { signal: aborted })],
  [
    'afterCommit',
    (options) =>
      handle(({ afterCommit }) => {
        afterCommit((options as { afterCommit: () => void }).afterCommit);
      }),
  ],
]);

class LazyRedis extends Redis {
  constructor() {
    super({ lazyConnect: true });
  }
}

/** What the app has where it would write the code. */
export const makeScope = () => ({
  ...root,
  ...client,
  ...{ openTelemetryMetrics, prometheusMetrics, transferSucceeded },
  ...{ pool, client: redis, createPool: () => mysql, postgres: () => ({ unsafe: read, begin: read }) },
  ...{ Pool, connectionString: '', Redis: LazyRedis, Counter, Gauge, Histogram, register: new Registry(), metrics },
  ...keys,
  ...{ service, secret, store: pgStore(noPool), receiver, options: receiverOptions, read, url, server },
  ...{ config: { client: 'pg' }, knex: () => knex },
  ...{ states: { paid: 'SUCCESS', bounced: 'FAILED' }, console, globalThis, AbortSignal, id, externalId: id },
  ...{ openPayouts: () => [], paidPayouts: () => [], isLive: () => true, isTrusted: () => false, isLedgerOpen: true },
  ...{ verify: () => false, signal: aborted, callback: {}, data: {}, body: '{}', sendMail: () => undefined },
  ...{ sign: (body: string) => signHmac.sign(body, { headers: { 'x-id': '7' } }), db: { transaction: read } },
  ...{ receive: (...given: [unknown, object]) => receiver.receive(...given), write: read, count: read },
  getTransaction: (...given: [string, object]) => service.getTransaction(...given),
  ...{ check: (_store: object, options: object) => options, app: { listen: () => server, set: () => 'set' } },
  // Without the listeners for signals, which would outlive the test.
  closeOnSignal: (...given: unknown[]) => given.every((each) => each !== undefined),
  urlFor: (base: string, externalId: string) => root.transferToken(secret).urlFor(base, externalId),
  process: {
    env: {
      ...{ PUBLIC_KEY: publicKey, TEST_PRIVATE_KEY: privateKey, CALLBACK_SECRET: secret, CALLBACK_PASSWORD: secret },
      ...{ TRANSFER_API_KEY: 'key', TRANSFER_API_SECRET: 'secret', REDIS_URL: 'redis://127.0.0.1:1' },
    },
  },
});
