// What an app exports under `declaration: true`: a value of each function of the package. The compiler writes their
// types down, so that it needs a name for each part of them.
import type { Server } from 'node:http';
import type { Request } from 'express';
import * as z from 'zod/v4';
import {
  basicAuth,
  closeOnSignal,
  drizzleStore,
  headerToken,
  hmacSignature,
  ipAllowList,
  knexStore,
  kyselyStore,
  memoryStore,
  messageSignature,
  mysqlStore,
  pgStore,
  postgresJsStore,
  prismaStore,
  publicKeySignature,
  redisStore,
  RetryLater,
  sequelizeStore,
  sqlStore,
  TransferCallbackError,
  transferCallbackHandler,
  transferCallbackListener,
  transferCallbackReceiver,
  transferCallbackRouter,
  transferCallbackSchema,
  transferToken,
  typeormStore,
  urlToken,
  type HandlerContext,
  type TransferSucceeded,
} from 'transfer-callbacks';
import {
  defineService,
  inspectTransfer,
  ReconciliationError,
  reconcileTransfer,
  reconcileTransfers,
  TransferClientError,
  transferService,
  type PendingTransfer,
} from 'transfer-callbacks/client';
import { openTelemetryMetrics, prometheusMetrics } from 'transfer-callbacks/metrics';
import { invalidCallbacks, storeContract, transferFailed, transferSucceeded } from 'transfer-callbacks/testing';

const secret = 'a-secret-of-the-projects';

// Verifiers.
export const basic = basicAuth({ username: 'service', password: secret });
export const token = headerToken('x-token', secret);
export const addresses = ipAllowList(['203.0.113.7']);
export const url = urlToken(secret);
export const perTransfer = transferToken(secret);
export const signature = hmacSignature({ header: 'x-signature', secrets: secret });
export const perTenant = hmacSignature({ header: 'x-signature', secrets: (request: Request) => request.params.tenant });
const publicKeys = process.env.PUBLIC_KEY;
export const byPublicKey = publicKeySignature({ header: 'x-signature', publicKeys });
export const byMessage = messageSignature({ publicKeys, url: 'https://merchant.example/callbacks' });
export const sign = (body: string) => signature.sign(body);

// Stores, of libraries as far as they are used.
interface Tx {
  query(sql: string): Promise<{ rows: unknown[] }>;
}
type Work = (tx: Tx) => Promise<void>;
interface PgClient extends Tx {
  on(event: 'error', listener: (error: Error) => void): unknown;
  off(event: 'error', listener: (error: Error) => void): unknown;
  release(destroy?: boolean): void;
}
declare const pool: { connect(): Promise<PgClient>; getConnection(): Promise<Tx> };
declare const ioredis: { call(command: string, ...args: string[]): Promise<unknown> };
declare const nodeRedis: {
  get(key: string): Promise<unknown>;
  set(key: string, value: string, options: object): Promise<unknown>;
  eval(script: string, options: object): Promise<unknown>;
  evalSha: unknown;
};
declare const prisma: { $queryRawUnsafe(): unknown; $extends(): unknown; $transaction(work: Work): unknown };
declare const kysely: { executeQuery(): unknown; transaction(): { execute(work: Work): unknown } };
declare const library: {
  [method in 'raw' | 'query' | 'unsafe']: () => unknown;
} & { transaction(work: Work): unknown; begin(work: Work): unknown; manager: Tx };
export const memory = memoryStore();
export const redis = redisStore(ioredis);
export const otherRedis = redisStore(nodeRedis);
export const pg = pgStore(pool);
export const mysql = mysqlStore(pool);
export const withPrisma = prismaStore(prisma, { dialect: 'postgres' });
export const withDrizzle = drizzleStore(library, { dialect: 'mysql' });
export const withKysely = kyselyStore(kysely, { dialect: 'postgres' });
export const withKnex = knexStore(library, { dialect: 'postgres' });
export const withTypeorm = typeormStore(library, { dialect: 'sqlite' });
export const withSequelize = sequelizeStore(library, { dialect: 'mysql' });
export const withPostgresJs = postgresJsStore(library);
export const withSql = sqlStore({
  dialect: 'postgres',
  query: () => [],
  transaction: (work: Work) => work(library.manager),
});
export const withSqlite = sqlStore({ dialect: 'sqlite', query: () => [] });

// The receiver, and what it is given.
export const options = {
  store: pg,
  async onSuccess({ data }: TransferSucceeded, { tx }: HandlerContext<PgClient>) {
    await tx.query(data.id);
  },
  onFailed: () => undefined,
};
export const receiver = transferCallbackReceiver(options);
export const receive = (callback: unknown) => receiver.receive(callback);
export const inspect = (id: string) => receiver.inspect(id);
export const check = () => receiver.check();
export const forget = (id: string, fingerprint: string) =>
  receiver.forget(id, { fingerprint, by: 'ada', reason: 'a test' });
export const close = () => receiver.close();
export const router = transferCallbackRouter({ receiver, verify: signature });
export const listen = transferCallbackListener({ receiver, verify: [addresses, signature] });
export const handle = transferCallbackHandler({ receiver, verify: signature });
export const stop = (server: Server) => closeOnSignal(server, receiver);
export const schema = transferCallbackSchema;
export const parse = (text: string) => schema.parse(JSON.parse(text));
export const later = () => new RetryLater('The ledger is closed.', { retryAfterMs: 60_000 });
export const code = (error: TransferCallbackError) => error.code;
export const toCode = (error: unknown) => (error instanceof TransferCallbackError ? error.code : undefined);

// A schema of the app's own.
export const ownFinals = z.object({
  event: z.literal('transfer.success'),
  data: z.object({ id: z.string(), externalId: z.string(), status: z.literal('SUCCESS') }),
});
export const own = transferService({ payload: ownFinals });
export const makeOwn = () => transferCallbackReceiver({ store: memory, service: own, onSuccess() {}, onFailed() {} });

// Another service, and a receiver of it.
export const ownService = defineService({
  read: ({ event, data }: { event: string; data: { id: number; amount: number | null } }) => ({
    ...{ state: event, id: data.id, externalId: data.id, amount: data.amount, fee: 5 },
  }),
  states: { paid: 'SUCCESS', bounced: 'FAILED', returned: 'REVERSED', deposit: 'OTHER' },
});
export const makeReceiver = () =>
  transferCallbackReceiver({
    ...{ store: memory, service: ownService, retentionMs: 86_400_000 },
    ...{ onSuccess() {}, onFailed() {}, onReversed() {}, onOther() {} },
  });

export const makeRouter = () => transferCallbackRouter({ receiver: makeReceiver() });

// In a class, as in Nest.
export class TransferCallbacks {
  readonly verify = signature;
  readonly perTenant = hmacSignature({
    header: 'x-signature',
    secrets: (request: Request) => String(request.params.tenant),
  });
  readonly receiver: ReturnType<typeof makeReceiver>;
  readonly store = memoryStore();
  constructor() {
    this.receiver = makeReceiver();
  }
  receive(callback: unknown) {
    return this.receiver.receive(callback);
  }
  inspect(id: string) {
    return this.receiver.inspect(id);
  }
}

// The documented service.
export const service = transferService({ baseUrl: 'https://service.example', apiKey: secret, apiSecret: secret });
export const create = (externalId: string) => service.createTransfer({ callbackUrl: externalId });
export const read = (id: string) => service.getTransaction(id);
export const confirming = transferCallbackReceiver({ ...options, service, confirm: true });
export const inspectOne = (id: string) => inspectTransfer({ receiver: confirming, id });
export const reconcileOne = (id: string) => reconcileTransfer({ receiver: confirming, id });
export const reconcile = (pending: PendingTransfer[]) => reconcileTransfers({ receiver: confirming, pending });
export const toReport = (error: unknown) => (error instanceof ReconciliationError ? error.report : undefined);
export const toFault = (error: unknown) => (error instanceof TransferClientError ? error.code : undefined);

// Metrics.
export const toMeter = openTelemetryMetrics;
export const stopMetrics = (meter: Parameters<typeof openTelemetryMetrics>[0]) => openTelemetryMetrics(meter);
export const register = (promClient: Parameters<typeof prometheusMetrics>[0]) => prometheusMetrics(promClient);

// Tests.
export const success = transferSucceeded();
export const failure = transferFailed({ externalId: 'payout-1' });
export const invalid = invalidCallbacks;
export const contract = storeContract;
export const [firstCheck] = storeContract;
export const runContract = () => storeContract.map(({ check: run }) => run(pg));
