// An app with one of each: what people have where an error of an option tells them to write other code. And what takes
// options, for test/unknown-options.test.ts, too.
import { createServer } from 'node:http';
import { metrics } from '@opentelemetry/api';
import { Redis } from 'ioredis';
import { createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import * as root from 'transfer-callbacks';
import * as client from 'transfer-callbacks/client';
import { openTelemetryMetrics, prometheusMetrics } from 'transfer-callbacks/metrics';
import { storeContract, transferSucceeded } from 'transfer-callbacks/testing';
import { deliver, transferSandbox } from 'transfer-sandbox';
import { expect } from 'vitest';
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
export const asked = defineService({ read, states, query: () => undefined });
export const reversingOptions = {
  ...{ ...receiverOptions, service: asked },
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
const signedBody = { header: 'x-signature', publicKeys: publicKey };
export const key = root.publicKeySignature(signedBody);
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

/** Has the methods of each library of SQL but pg and mysql2. */
export const library = Object.assign(() => undefined, {
  ...{ $queryRawUnsafe: read, $transaction: read, $extends: read, executeQuery: read, execute: read },
  ...{ transaction: read, raw: read, query: read, manager: {}, unsafe: read, begin: read, dialect: 'postgres' },
}) as never;
const postgres = { dialect: 'postgres' };
export const [check = expect.fail('There is no check.')] = storeContract;

/** Everything that takes options: a call with them, one of their names, and those that it requires. */
export const takesOptions: Record<string, [call: (options: never) => unknown, known: string, required?: object]> = {
  transferCallbackReceiver: [(options) => transferCallbackReceiver(options), 'leaseMs', receiverOptions],
  transferCallbackRouter: [(options) => transferCallbackRouter(options), 'verify', { receiver }],
  transferCallbackListener: [(options) => root.transferCallbackListener(options), 'verify', receiverOptions],
  transferCallbackHandler: [(options) => root.transferCallbackHandler(options), 'bodyLimitBytes', { receiver }],
  'transferCallbackReceiver().receive': [(options) => receive(options), 'verify'],
  'transferCallbackReceiver().close': [
    (options) => transferCallbackReceiver(receiverOptions).close(options),
    'timeoutMs',
  ],
  'transferCallbackReceiver().forget': [
    (options) => receiver.forget(id, options),
    'reason',
    { fingerprint: '[]', by: 'a test' },
  ],
  closeOnSignal: [(options) => root.closeOnSignal(server, receiver, options), 'timeoutMs'],
  RetryLater: [(options) => new root.RetryLater('The ledger is closed', options), 'retryAfterMs'],
  basicAuth: [(options) => root.basicAuth(options), 'password', { username: 'service', password: secret }],
  hmacSignature: [(options) => root.hmacSignature(options), 'toleranceMs', hmac],
  publicKeySignature: [(options) => root.publicKeySignature(options), 'encoding', signedBody],
  messageSignature: [(options) => root.messageSignature(options), 'covered', { url, publicKeys: publicKey }],
  'hmacSignature().sign': [(options) => signHmac.sign('{}', options), 'headers', { headers: { 'x-id': '7' } }],
  'publicKeySignature().sign': [(options) => key.sign('{}', options), 'dsaEncoding', { secret: privateKey }],
  'messageSignature().sign': [(options) => message.sign('{}', options), 'dsaEncoding', { secret: privateKey }],
  memoryStore: [(options) => memoryStore(options), 'maxEntries'],
  redisStore: [(options) => redisStore(redis, options), 'prefix'],
  pgStore: [(options) => pgStore(pool, options), 'table'],
  mysqlStore: [(options) => root.mysqlStore(mysql, options), 'table'],
  sqlStore: [(options) => root.sqlStore(library, options), 'idleTimeoutMs'],
  postgresJsStore: [(options) => root.postgresJsStore(library, options), 'schema'],
  prismaStore: [(options) => root.prismaStore(library, options), 'dialect', postgres],
  drizzleStore: [(options) => root.drizzleStore(library, options), 'table', postgres],
  kyselyStore: [(options) => root.kyselyStore(library, options), 'table', postgres],
  knexStore: [(options) => root.knexStore(library, options), 'table', postgres],
  typeormStore: [(options) => root.typeormStore(library, options), 'table', postgres],
  sequelizeStore: [(options) => root.sequelizeStore(library, options), 'table', postgres],
  'store.prune': [(options) => pgStore(noPool).prune(options), 'olderThanMs'],
  transferService: [(options) => transferService(options), 'timeoutMs', keys],
  // A signal that has aborted keeps these from asking the service.
  'transferService().createTransfer': [
    (options) => service.createTransfer({ callbackUrl: url }, options),
    'schema',
    { signal: aborted },
  ],
  'transferService().getTransaction': [(options) => service.getTransaction(id, options), 'signal'],
  defineService: [(options) => defineService(options), 'payload', { read, states }],
  'defineService().makeConfirm': [(options) => asked.makeConfirm?.(options), 'concurrency'],
  'transferService().makeConfirm': [(options) => service.makeConfirm?.(options), 'concurrency'],
  inspectTransfer: [(options) => inspectTransfer(options), 'signal', { receiver, id, signal: aborted }],
  reconcileTransfer: [(options) => reconcileTransfer(options), 'signal', { receiver, id, signal: aborted }],
  reconcileTransfers: [(options) => reconcileTransfers(options), 'minAgeMs', { receiver: reversing, pending: [] }],
  'storeContract[].check': [(options) => check.check(memoryStore(), options), 'transaction'],
  deliver: [(options) => deliver(server, '{}', options), 'copies'],
  transferSandbox: [
    async (options) => {
      const started = await transferSandbox(options);
      await started.close();
    },
    'speed',
    { console: false },
  ],
};

/** Makes something with these options, beside the others that it requires. */
export const makers: readonly [name: string, make: Make][] = [
  ...Object.entries(takesOptions)
    // Its listeners for signals would outlive the test.
    .filter(([name]) => name !== 'closeOnSignal')
    .map(([name, [call, , required]]): [string, Make] => [
      name,
      (options) => call({ ...required, ...options } as never),
    ]),
  [
    'a receiver of refunds',
    (options) =>
      transferCallbackReceiver({ ...('service' in options ? receiverOptions : reversingOptions), ...options } as never),
  ],
  ['confirm', (confirm) => transferCallbackReceiver({ ...receiverOptions, confirm })],
];

export const makerOf = new Map<string, Make>([
  ...makers,
  [
    'a store on `query` alone',
    (options) => root.sqlStore({ dialect: 'postgres', query: () => undefined, ...options } as never),
  ],
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
