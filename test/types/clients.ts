// Clients of Redis, SQL and metrics are taken by their shape, and are those that people have.
import { metrics, type Meter } from '@opentelemetry/api';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import type { Cluster, Redis } from 'ioredis';
import type { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5';
import type { Cluster as ValkeyCluster, Redis as Valkey } from 'iovalkey';
import type { Pool, PoolClient } from 'pg';
import * as promClient from 'prom-client';
import { Counter, Gauge, Histogram, register, Registry } from 'prom-client';
import { RESP_TYPES, type createClient, type createClientPool, type createCluster, type createSentinel } from 'redis';
import { expectTypeOf } from 'vitest';
import {
  pgStore,
  redisStore,
  sqlStore,
  transferCallbackRouter,
  type CallbackStore,
  type IoredisClient,
  type SqlStore,
} from 'transfer-callbacks';
import { openTelemetryMetrics, prometheusMetrics } from 'transfer-callbacks/metrics';
import type { OpenTelemetryMeter } from '../../src/metrics/open-telemetry.js';
import type { NodeRedisClient } from '../../src/stores/redis/store.js';

expectTypeOf<Redis>().toExtend<IoredisClient>();
expectTypeOf<Cluster>().toExtend<IoredisClient>();
expectTypeOf<Redis5>().toExtend<IoredisClient>();
expectTypeOf<Cluster5>().toExtend<IoredisClient>();
expectTypeOf<Valkey>().toExtend<IoredisClient>();
expectTypeOf<ValkeyCluster>().toExtend<IoredisClient>();
expectTypeOf<ReturnType<typeof createClient>>().toExtend<NodeRedisClient>();
expectTypeOf<ReturnType<typeof createCluster>>().toExtend<NodeRedisClient>();
expectTypeOf<ReturnType<typeof createClientPool>>().toExtend<NodeRedisClient>();
expectTypeOf<ReturnType<typeof createSentinel>>().toExtend<NodeRedisClient>();

/** As Upstash's client: `set` takes other options, `eval` takes arrays. */
interface OtherClient {
  get(key: string): Promise<unknown>;
  set(key: string, value: string, options: { px: number; nx?: true }): Promise<unknown>;
  eval(script: string, keys: string[], args: string[]): Promise<unknown>;
  evalsha(sha1: string, keys: string[], args: string[]): Promise<unknown>;
}
expectTypeOf<OtherClient>().not.toExtend<NodeRedisClient>();
expectTypeOf<OtherClient>().not.toExtend<IoredisClient>();

// As they are written: the argument, not only the type.
declare const redis: Redis;
declare const valkeyCluster: ValkeyCluster;
declare const nodeRedis: ReturnType<typeof createClient>;
declare const either: Redis | Cluster;
expectTypeOf(redisStore(redis, { prefix: 'payouts:' })).toEqualTypeOf<Required<Omit<CallbackStore, 'check'>>>();
redisStore(valkeyCluster);
redisStore(nodeRedis);
redisStore(either);
// Set to reply with other types.
redisStore(nodeRedis.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.NUMBER]: String }));

// @ts-expect-error -- a Map is no client.
redisStore(new Map());
// @ts-expect-error -- a pool of pg.
redisStore({ query: () => Promise.resolve({ rows: [] }), connect: () => Promise.resolve() });
// @ts-expect-error -- an address.
redisStore('redis://127.0.0.1:6379');
// @ts-expect-error -- a client that is still being connected.
redisStore(Promise.resolve(redis));
// @ts-expect-error -- the callbacks of node_redis 3 in place of promises.
redisStore({ call: (command: string, reply: (error: Error | null, response: unknown) => void) => [command, reply] });
// @ts-expect-error -- nothing.
redisStore();
// @ts-expect-error -- misspelt.
redisStore(redis, { keyPrefix: 'payouts:' });

// Handlers get the transaction of the library without an annotation.
declare const pool: Pool;
const pgTable = pgStore(pool, { schema: 'payouts' });
expectTypeOf(pgTable).toEqualTypeOf<SqlStore<PoolClient>>();

transferCallbackRouter({
  store: pgTable,
  async onSuccess({ data }, { tx }) {
    expectTypeOf(tx).toEqualTypeOf<PoolClient>();
    await tx.query('INSERT INTO ledger VALUES ($1)', [data.id]);
  },
  onFailed: (_callback, { tx }) => tx.query<{ id: string }>('SELECT id FROM ledger'),
});

// A pool of one's own that declares `connect` once.
interface OwnClient {
  query(text: string): Promise<{ rows: unknown[] }>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  off(event: 'error', listener: (error: Error) => void): unknown;
  release(destroy?: boolean): void;
  mine: true;
}
declare const ownPool: { connect(): Promise<OwnClient> };
expectTypeOf(pgStore(ownPool, { idleTimeoutMs: null })).toEqualTypeOf<SqlStore<OwnClient>>();

// SQLite has no transaction for a handler.
expectTypeOf(sqlStore({ dialect: 'sqlite', query: () => [] })).toEqualTypeOf<SqlStore<undefined>>();

// A library of one's own.
interface OwnTx {
  run(sql: string): Promise<unknown[]>;
}
declare const own: OwnTx & { inTransaction(work: (tx: OwnTx) => Promise<void>): Promise<void> };
expectTypeOf(
  sqlStore({
    dialect: 'mysql',
    query: (sql, tx: OwnTx = own) => tx.run(sql),
    transaction: (work, { queueMs }) => {
      expectTypeOf(queueMs).toEqualTypeOf<number>();
      return own.inTransaction(work);
    },
  }),
).toEqualTypeOf<SqlStore<OwnTx>>();

// @ts-expect-error -- a client, not a pool.
pgStore({ query: () => Promise.resolve({ rows: [] }) });
// @ts-expect-error -- an address.
pgStore('postgres://127.0.0.1');
// @ts-expect-error -- misspelt.
pgStore(pool, { tableName: 'callbacks' });
// @ts-expect-error -- no transaction.
sqlStore({ dialect: 'postgres', query: () => [] });

expectTypeOf<Meter>().toExtend<OpenTelemetryMeter>();

// As they are written: the argument, not only the type.
expectTypeOf(prometheusMetrics({ Counter, Gauge, Histogram, registers: [register] })).toEqualTypeOf<() => void>();
prometheusMetrics({ ...promClient, registers: [register, new Registry()] });
expectTypeOf(openTelemetryMetrics(metrics.getMeter('transfer-callbacks'))).toEqualTypeOf<() => void>();
openTelemetryMetrics(new MeterProvider().getMeter('transfer-callbacks'));

// @ts-expect-error -- where to register?
prometheusMetrics({ Counter, Gauge, Histogram });
// @ts-expect-error -- a registry in place of the classes.
prometheusMetrics(register);
// @ts-expect-error -- one registry in place of several.
prometheusMetrics({ Counter, Gauge, Histogram, registers: register });
// @ts-expect-error -- in the wrong place.
prometheusMetrics({ Counter: Gauge, Gauge: Counter, Histogram, registers: [register] });
// @ts-expect-error -- a provider in place of its meter.
openTelemetryMetrics(new MeterProvider());
// @ts-expect-error -- nothing.
openTelemetryMetrics();
