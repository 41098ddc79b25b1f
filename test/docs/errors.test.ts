// docs/errors.md, and what the messages of errors tell people to do.
import { metrics } from '@opentelemetry/api';
import { Redis } from 'ioredis';
import { runInNewContext } from 'node:vm';
import { Pool } from 'pg';
import { Counter, Gauge, Histogram, register } from 'prom-client';
import { describe, expect, test } from 'vitest';
import { keyPairs, toPem } from '../http/verifiers/keys.js';
import {
  basicAuth,
  headerToken,
  hmacSignature,
  ipAllowList,
  knexStore,
  memoryStore,
  messageSignature,
  pgStore,
  publicKeySignature,
  redisStore,
  TransferCallbackError,
  transferCallbackReceiver,
  transferCallbackRouter,
  transferCallbackSchema,
  transferToken,
  urlToken,
} from 'transfer-callbacks';
import {
  defineService,
  inspectTransfer,
  reconcileTransfer,
  reconcileTransfers,
  transferService,
  TransferClientError,
} from 'transfer-callbacks/client';
import { deliver, transferSandbox } from 'transfer-sandbox';
import { openTelemetryMetrics, prometheusMetrics } from 'transfer-callbacks/metrics';
import { findAnchors, findPage } from './pages.js';

test('the message of an error leads to the section of its own code, not to that of its cause', () => {
  const page = findPage('docs/errors.md');
  const anchors = findAnchors(page);
  const codes = [...page.text.matchAll(/^### (.+)$/gm)].map(([, code = '']) => code);
  expect(codes.length).toBeGreaterThan(20);
  for (const code of codes) {
    for (const error of [
      new TransferCallbackError(code as 'CLOSING', 'It failed.'),
      new TransferClientError(code as 'BUSY', 'It failed.'),
    ]) {
      const section = code.toLowerCase();
      expect(anchors).toContain(section);
      const isPlain = code === 'INVALID_ARGUMENT' || code === 'RETRY_LATER';
      const end = isPlain ? '' : ` See node_modules/transfer-callbacks/docs/errors.md#${section}.`;
      expect(error.message).toBe(`It failed.${end}`);
      const outer = new TransferClientError('NOT_HANDLED', `The receiver ended: ${error.message}.`);
      expect(outer.message).toMatch(/^The receiver ended: It failed\. See [^ ]+#not_handled\.$/);
    }
  }
});

const redis = new Redis({ lazyConnect: true });
const service = { baseUrl: 'http://127.0.0.1:1', apiKey: 'key', apiSecret: 'secret' };
const secret = 'a-secret-of-a-test';
const handlers = { onSuccess: () => undefined, onFailed: () => undefined };
const receiverOptions = { store: memoryStore(), service: transferService(service), ...handlers };
const receiver = transferCallbackReceiver(receiverOptions);
const read = ({ state, id }: { state: string; id: string }) => ({ state, id, externalId: id });
const states = { paid: 'SUCCESS', bounced: 'FAILED', returned: 'REVERSED' } as const;
/** Of a service that can be asked, and that takes payouts back. */
const reversing = transferCallbackReceiver({
  ...{ ...receiverOptions, service: defineService({ read, states, query: () => undefined }) },
  ...{ onReversed: () => undefined, retentionMs: 86_400_000 },
});
const pool = new Pool({ max: 1 });
const knex = { raw: () => undefined, transaction: () => undefined };
const transferId = 'payout-1';
const publicKeys = toPem(keyPairs.ed25519[0]);
const aborted = AbortSignal.abort();

function ignoreAbort(error: Error): void {
  if (error.name !== 'AbortError') throw error;
}

/** What the app has where it would write the code. */
const scope = {
  ...{ basicAuth, headerToken, hmacSignature, ipAllowList, memoryStore, pgStore, pool, redisStore, urlToken },
  ...{ transferCallbackReceiver, defineService, read, states: { paid: 'SUCCESS', bounced: 'FAILED' } },
  ...{
    transferCallbackSchema,
    inspectTransfer,
    transferService,
    openTelemetryMetrics,
    prometheusMetrics,
  },
  ...{
    Redis: class extends Redis {
      constructor() {
        super({ lazyConnect: true });
      }
    },
    Pool,
    connectionString: '',
    metrics,
  },
  ...{
    ...service,
    service: transferService(service),
    secret,
    client: redis,
    store: receiverOptions.store,
    receiver,
    options: receiverOptions,
    console,
  },
  ...{
    id: transferId,
    externalId: transferId,
    urlFor: (base: string, externalId: string) => transferToken(secret).urlFor(base, externalId),
    globalThis,
    AbortSignal,
    openPayouts: () => [],
    paidPayouts: () => [],
  },
  ...{ Counter, Gauge, Histogram, register },
  process: {
    env: {
      PUBLIC_KEY: publicKeys,
      CALLBACK_SECRET: secret,
      CALLBACK_PASSWORD: secret,
      TRANSFER_API_KEY: 'key',
      TRANSFER_API_SECRET: 'secret',
    },
  },
};

/** Everything that takes options, with the others that it requires. */
const makers: [name: string, make: (options: object) => unknown][] = [
  ['transferCallbackReceiver', (options) => transferCallbackReceiver({ ...receiverOptions, ...options })],
  ['transferCallbackRouter', (options) => transferCallbackRouter({ ...receiverOptions, ...options })],
  ['transferCallbackRouter with a receiver', (options) => transferCallbackRouter({ receiver, ...options })],
  ['memoryStore', (options) => memoryStore(options)],
  ['redisStore', (options) => redisStore(redis, options)],
  ['pgStore', (options) => pgStore(pool, options)],
  ['knexStore', (options) => knexStore(knex, { dialect: 'postgres', ...options })],
  ['transferService', (options) => transferService({ ...service, ...options })],
  [
    'reconcileTransfers',
    (options) =>
      'paid' in options
        ? reconcileTransfers({ receiver: reversing, pending: [], ...(options as object) })
        : reconcileTransfers({ receiver, pending: [], ...options }),
  ],
  // A signal that has aborted keeps both from asking the service.
  ['reconcileTransfer', (options) => reconcileTransfer({ receiver, id: transferId, signal: aborted, ...options })],
  [
    'inspectTransfer',
    (options) => inspectTransfer({ receiver, id: transferId, signal: aborted, ...options }).catch(ignoreAbort),
  ],
  [
    'transferSandbox',
    async (options) => {
      const sandbox = await transferSandbox(options);
      await sandbox.close();
    },
  ],
  ['hmacSignature', (options) => hmacSignature({ header: 'x-signature', secrets: secret, ...options })],
  ['publicKeySignature', (options) => publicKeySignature({ header: 'x-signature', publicKeys, ...options })],
  ['messageSignature', (options) => messageSignature({ url: 'https://merchant.example', publicKeys, ...options })],
  ['deliver', (options) => deliver((_request, response) => response.end(), '{}', options)],
];

/** Returns the code that the message tells to write. */
function findCode(message: string): string {
  return / Write `([^`]+)`/.exec(message)?.[1] ?? expect.fail(`No code to write: ${message}`);
}

async function messageOf(call: () => unknown): Promise<string> {
  try {
    await call();
  } catch (error) {
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT' });
    return (error as Error).message;
  }
  return expect.fail('Nothing was refused.');
}

describe.each(makers)('%s', (_name, make) => {
  test('accepts the code that the error of each option tells to write', async () => {
    const known = / known are (.*)\.$/.exec(await messageOf(() => make({ unheardOf: 1 })))?.[1]?.split(', ') ?? [];
    expect(known.length).toBeGreaterThan(0);
    for (const option of known) {
      const message = await messageOf(() => make({ [option]: Symbol('wrong') }));
      if (message.includes('to be left out')) continue;
      const code = findCode(message);
      expect(code, option).toMatch(new RegExp(`^${option}: `));
      await make(runInNewContext(`({ ${code} })`, scope) as object);
    }
  });
});

test.each<[string, () => unknown]>([
  ['a URL for a client of Redis', () => redisStore('redis://127.0.0.1' as never)],
  ['a URL for a pool', () => pgStore('postgres://127.0.0.1' as never)],
  ['no dialect', () => knexStore(knex, {} as never)],
  ['no name of a header', () => headerToken('', secret)],
  ['a header that proxies drop', () => headerToken('connection', secret)],
  ['no credentials', () => basicAuth([] as never)],
  ['a text for credentials', () => basicAuth('service' as never)],
  ['a user without a name', () => basicAuth({ username: '', password: secret })],
  ['no addresses', () => ipAllowList([])],
  ['an address that is none', () => ipAllowList(['localhost'])],
  ['a path for a URL', () => transferToken(secret).urlFor('/callbacks', transferId)],
  ['a meter that is none', () => openTelemetryMetrics({} as never)],
  ['a client of Prometheus that is none', () => prometheusMetrics({} as never)],
])('the code to write in place of %s works', async (_what, call) => {
  const code = findCode(await messageOf(call));
  expect(runInNewContext(code, scope)).toBeDefined();
});
