// The names that the code which an error tells to write may use.
import { metrics } from '@opentelemetry/api';
import { Redis } from 'ioredis';
import { Pool } from 'pg';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { pgStore, redisStore, transferCallbackReceiver, transferCallbackRouter } from 'transfer-callbacks';
import * as root from 'transfer-callbacks';
import { defineService, inspectTransfer, transferService } from 'transfer-callbacks/client';
import { openTelemetryMetrics, prometheusMetrics } from 'transfer-callbacks/metrics';
import { transferSucceeded } from 'transfer-callbacks/testing';
import * as app from './app.js';

const { aborted, id, keys, knex, mysql, noPool, pool, privateKey, publicKey, read, receiver } = app;
const { receiverOptions, redis, secret, server, service, signHmac, url } = app;

class LazyRedis extends Redis {
  constructor() {
    super({ lazyConnect: true });
  }
}

/** What the app has where it would write the code. */
export const makeScope = () => ({
  ...{ basicAuth: root.basicAuth, headerToken: root.headerToken, hmacSignature: root.hmacSignature },
  ...{ ipAllowList: root.ipAllowList, urlToken: root.urlToken, transferCallbackSchema: root.transferCallbackSchema },
  ...{ pgStore, redisStore, mysqlStore: root.mysqlStore, postgresJsStore: root.postgresJsStore },
  ...{ knexStore: root.knexStore, RetryLater: root.RetryLater, transferCallbackReceiver, transferCallbackRouter },
  ...{ inspectTransfer, transferService, defineService, openTelemetryMetrics, prometheusMetrics, transferSucceeded },
  ...{ pool, client: redis, createPool: () => mysql, postgres: () => ({ unsafe: read, begin: read }) },
  ...{ Pool, connectionString: '', Redis: LazyRedis, Counter, Gauge, Histogram, register: new Registry(), metrics },
  ...{
    ...keys,
    service,
    secret,
    store: pgStore(noPool),
    receiver,
    options: receiverOptions,
    read,
    url,
    server,
    config: { client: 'pg' },
    knex: () => knex,
  },
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
