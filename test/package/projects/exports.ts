// What an app exports under `declaration: true`: a value of each function of the package. The compiler writes their
// types down, so that it needs a name for each part of them.
import type { Server } from 'node:http';
import type { Request } from 'express';
import * as z from 'zod/v4';
import * as root from 'transfer-callbacks';
import * as client from 'transfer-callbacks/client';
import * as metrics from 'transfer-callbacks/metrics';
import * as testing from 'transfer-callbacks/testing';

const secret = 'a-secret-of-the-projects';

// Verifiers.
export const basic = root.basicAuth({ username: 'service', password: secret });
export const token = root.headerToken('x-token', secret);
export const addresses = root.ipAllowList(['203.0.113.7']);
export const url = root.urlToken(secret);
export const perTransfer = root.transferToken(secret);
export const signature = root.hmacSignature({ header: 'x-signature', secrets: secret });
export const perTenant = root.hmacSignature({
  header: 'x-signature',
  secrets: (request: Request) => request.params.tenant,
});
const publicKeys = process.env.PUBLIC_KEY;
export const byPublicKey = root.publicKeySignature({ header: 'x-signature', publicKeys });
export const byMessage = root.messageSignature({ publicKeys, url: 'https://merchant.example/callbacks' });
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
export const memory = root.memoryStore();
export const redis = root.redisStore(ioredis);
export const otherRedis = root.redisStore(nodeRedis);
export const pg = root.pgStore(pool);
export const mysql = root.mysqlStore(pool);
export const withPrisma = root.prismaStore(prisma, { dialect: 'postgres' });
export const withDrizzle = root.drizzleStore(library, { dialect: 'mysql' });
export const withKysely = root.kyselyStore(kysely, { dialect: 'postgres' });
export const withKnex = root.knexStore(library, { dialect: 'postgres' });
export const withTypeorm = root.typeormStore(library, { dialect: 'sqlite' });
export const withSequelize = root.sequelizeStore(library, { dialect: 'mysql' });
export const withPostgresJs = root.postgresJsStore(library);
export const withSql = root.sqlStore({
  dialect: 'postgres',
  query: () => [],
  transaction: (work: Work) => work(library.manager),
});
export const withSqlite = root.sqlStore({ dialect: 'sqlite', query: () => [] });

// The receiver, and what it is given.
export const options = {
  store: pg,
  async onSuccess({ data }: root.TransferSucceeded, { tx }: root.HandlerContext<PgClient>) {
    await tx.query(data.id);
  },
  onFailed: () => undefined,
};
export const receiver = root.transferCallbackReceiver(options);
export const receive = (callback: unknown) => receiver.receive(callback);
export const inspect = (id: string) => receiver.inspect(id);
export const check = () => receiver.check();
export const forget = (id: string, fingerprint: string) =>
  receiver.forget(id, { fingerprint, by: 'ada', reason: 'a test' });
export const close = () => receiver.close();
export const router = root.transferCallbackRouter({ receiver, verify: signature });
export const listen = root.transferCallbackListener({ receiver, verify: [addresses, signature] });
export const handle = root.transferCallbackHandler({ receiver, verify: signature });
export const stop = (server: Server) => root.closeOnSignal(server, receiver);
export const schema = root.transferCallbackSchema;
export const parse = (text: string) => schema.parse(JSON.parse(text));
export const later = () => new root.RetryLater('The ledger is closed.', { retryAfterMs: 60_000 });
export const code = (error: root.TransferCallbackError) => error.code;
export const toCode = (error: unknown) => (error instanceof root.TransferCallbackError ? error.code : undefined);

// A schema of the app's own.
export const ownFinals = z.object({
  event: z.literal('transfer.success'),
  data: z.object({ id: z.string(), externalId: z.string(), status: z.literal('SUCCESS') }),
});
export const own = client.transferService({ payload: ownFinals });
export const makeOwn = () =>
  root.transferCallbackReceiver({ store: memory, service: own, onSuccess() {}, onFailed() {} });

// Another service, and a receiver of it.
export const ownService = client.defineService({
  read: ({ event, data }: { event: string; data: { id: number; amount: number | null } }) => ({
    ...{ state: event, id: data.id, externalId: data.id, amount: data.amount, fee: 5 },
  }),
  states: { paid: 'SUCCESS', bounced: 'FAILED', returned: 'REVERSED', deposit: 'OTHER' },
});
export const makeReceiver = () =>
  root.transferCallbackReceiver({
    ...{ store: memory, service: ownService, retentionMs: 86_400_000 },
    ...{ onSuccess() {}, onFailed() {}, onReversed() {}, onOther() {} },
  });

export const makeRouter = () => root.transferCallbackRouter({ receiver: makeReceiver() });

// In a class, as in Nest.
export class TransferCallbacks {
  readonly verify = signature;
  readonly perTenant = root.hmacSignature({
    header: 'x-signature',
    secrets: (request: Request) => String(request.params.tenant),
  });
  readonly receiver: ReturnType<typeof makeReceiver>;
  readonly store = root.memoryStore();
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
export const service = client.transferService({
  baseUrl: 'https://service.example',
  apiKey: secret,
  apiSecret: secret,
});
export const create = (externalId: string) => service.createTransfer({ callbackUrl: externalId });
export const read = (id: string) => service.getTransaction(id);
export const confirming = root.transferCallbackReceiver({ ...options, service, confirm: true });
export const inspectOne = (id: string) => client.inspectTransfer({ receiver: confirming, id });
export const reconcileOne = (id: string) => client.reconcileTransfer({ receiver: confirming, id });
export const reconcile = (pending: client.PendingTransfer[]) =>
  client.reconcileTransfers({ receiver: confirming, pending });
export const toReport = (error: unknown) => (error instanceof client.ReconciliationError ? error.report : undefined);
export const toFault = (error: unknown) => (error instanceof client.TransferClientError ? error.code : undefined);

// Metrics.
export const toMeter = metrics.openTelemetryMetrics;
export const stopMetrics = (meter: Parameters<typeof metrics.openTelemetryMetrics>[0]) =>
  metrics.openTelemetryMetrics(meter);
export const register = (promClient: Parameters<typeof metrics.prometheusMetrics>[0]) =>
  metrics.prometheusMetrics(promClient);

// Tests.
export const success = testing.transferSucceeded();
export const failure = testing.transferFailed({ externalId: 'payout-1' });
export const invalid = testing.invalidCallbacks;
export const contract = testing.storeContract;
export const [firstCheck] = testing.storeContract;
export const runContract = () => testing.storeContract.map(({ check: run }) => run(pg));
