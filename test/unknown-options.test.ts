// No export, and no method of what an export returns, takes options that it does not know.
import { metrics } from '@opentelemetry/api';
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Redis } from 'ioredis';
import { createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { afterAll, expect, test } from 'vitest';
import * as index from 'transfer-callbacks';
import * as client from 'transfer-callbacks/client';
import * as recording from 'transfer-callbacks/metrics';
import * as node from 'transfer-callbacks/node';
import * as testing from 'transfer-callbacks/testing';
import * as web from 'transfer-callbacks/web';
import * as sandboxed from 'transfer-sandbox';

const entries = {
  '.': index,
  './node': node,
  './web': web,
  './client': client,
  './metrics': recording,
  './testing': testing,
};
const exported = Object.assign({}, sandboxed, ...Object.values(entries)) as Readonly<Record<string, unknown>>;

const secret = 'a-secret-of-a-test';
const store = index.memoryStore();
const parts = { store, onSuccess: () => undefined, onFailed: () => undefined, logger: false as const };
const service = { baseUrl: 'http://127.0.0.1:1', apiKey: 'key', apiSecret: 'secret' };
const payouts = client.transferService(service);
const receiver = index.transferCallbackReceiver({ ...parts, service: payouts });
const definition = { read: () => ({ ignored: 'all' }), states: { paid: 'SUCCESS', bounced: 'FAILED' } } as const;
const asked = client.defineService({ ...definition, query: () => undefined });
const signature = index.hmacSignature({ header: 'x-signature', secrets: secret });
const { publicKey } = generateKeyPairSync('ed25519', {
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});
const signedBody = { header: 'x-signature', publicKeys: publicKey };
const signedMessage = { url: 'https://merchant.example/callbacks', publicKeys: publicKey };
const meter = metrics.getMeter('a test');
const prometheus = { Counter, Gauge, Histogram, registers: [new Registry()] };
const postgres = { dialect: 'postgres' };
const call = (): undefined => undefined;
/** Has the methods of each other library of SQL. None of them is called: options are refused before. */
const library = Object.assign(() => undefined, {
  ...{ $queryRawUnsafe: call, $transaction: call, $extends: call, executeQuery: call, execute: call },
  ...{ transaction: call, raw: call, query: call, manager: {}, unsafe: call, begin: call, ...postgres },
}) as never;
const server = createServer();
const redis = new Redis({ lazyConnect: true });
const pool = new Pool();
const mysqlPool = createPool({});
const sqlStore = index.pgStore(pool);
const sandbox = await sandboxed.transferSandbox();
const [contract = expect.fail('There is no check.')] = testing.storeContract;

afterAll(async () => {
  await Promise.all([sandbox.close(), pool.end(), mysqlPool.end()]);
});

/** What takes options: a call with them, one of their names, and those that it requires. */
const takesOptions: Record<string, [call: (options: never) => unknown, known: string, required?: object]> = {
  transferCallbackReceiver: [(options) => index.transferCallbackReceiver(options), 'leaseMs', parts],
  transferCallbackRouter: [(options) => index.transferCallbackRouter(options), 'verify', { receiver }],
  transferCallbackListener: [(options) => index.transferCallbackListener(options), 'verify', parts],
  transferCallbackHandler: [(options) => index.transferCallbackHandler(options), 'bodyLimitBytes', { receiver }],
  'transferCallbackReceiver().receive': [(options) => receiver.receive(testing.transferSucceeded(), options), 'verify'],
  'transferCallbackReceiver().close': [(options) => receiver.close(options), 'timeoutMs'],
  'transferCallbackReceiver().forget': [
    (options) => receiver.forget('id', options),
    'reason',
    { fingerprint: '[]', by: 'A test' },
  ],
  closeOnSignal: [(options) => index.closeOnSignal(server, receiver, options), 'timeoutMs'],
  RetryLater: [(options) => new index.RetryLater('Not now.', options), 'retryAfterMs'],
  basicAuth: [(options) => index.basicAuth(options), 'password', { username: 'service' }],
  hmacSignature: [(options) => index.hmacSignature(options), 'toleranceMs', { header: 'x-signature', secrets: secret }],
  publicKeySignature: [(options) => index.publicKeySignature(options), 'encoding', signedBody],
  messageSignature: [(options) => index.messageSignature(options), 'covered', signedMessage],
  'hmacSignature().sign': [(options) => signature.sign('{}', options), 'headers'],
  'publicKeySignature().sign': [(options) => index.publicKeySignature(signedBody).sign('{}', options), 'dsaEncoding'],
  'messageSignature().sign': [(options) => index.messageSignature(signedMessage).sign('{}', options), 'dsaEncoding'],
  memoryStore: [(options) => index.memoryStore(options), 'maxEntries'],
  redisStore: [(options) => index.redisStore(redis, options), 'prefix'],
  pgStore: [(options) => index.pgStore(pool, options), 'table'],
  mysqlStore: [(options) => index.mysqlStore(mysqlPool, options), 'table'],
  sqlStore: [(options) => index.sqlStore(library, options), 'idleTimeoutMs'],
  postgresJsStore: [(options) => index.postgresJsStore(library, options), 'schema'],
  prismaStore: [(options) => index.prismaStore(library, options), 'dialect', postgres],
  drizzleStore: [(options) => index.drizzleStore(library, options), 'table', postgres],
  kyselyStore: [(options) => index.kyselyStore(library, options), 'table', postgres],
  knexStore: [(options) => index.knexStore(library, options), 'table', postgres],
  typeormStore: [(options) => index.typeormStore(library, options), 'table', postgres],
  sequelizeStore: [(options) => index.sequelizeStore(library, options), 'table', postgres],
  'store.prune': [(options) => sqlStore.prune(options), 'olderThanMs'],
  transferService: [(options) => client.transferService(options), 'timeoutMs', service],
  'transferService().createTransfer': [
    (options) => payouts.createTransfer({ callbackUrl: 'http://127.0.0.1:1' }, options),
    'schema',
  ],
  'transferService().getTransaction': [(options) => payouts.getTransaction('id', options), 'signal'],
  defineService: [(options) => client.defineService(options), 'payload', definition],
  'defineService().makeConfirm': [(options) => asked.makeConfirm?.(options), 'concurrency'],
  'transferService().makeConfirm': [(options) => payouts.makeConfirm?.(options), 'concurrency'],
  inspectTransfer: [(options) => client.inspectTransfer(options), 'signal', { id: 'id', receiver }],
  reconcileTransfer: [(options) => client.reconcileTransfer(options), 'signal', { id: 'id', receiver }],
  reconcileTransfers: [(options) => client.reconcileTransfers(options), 'minAgeMs', { receiver, pending: [] }],
  'storeContract[].check': [(options) => contract.check(store, options), 'transaction'],
  deliver: [(options) => sandboxed.deliver(server, '{}', options), 'copies'],
  transferSandbox: [(options) => sandboxed.transferSandbox(options), 'speed'],
};

/** What takes one object, but may be given a second one by mistake: a `verify` there would be ignored. */
const takesNone: Record<string, (...surplus: never[]) => unknown> = {
  transferCallbackRouter: (...surplus) => index.transferCallbackRouter({ receiver }, ...surplus),
  transferCallbackListener: (...surplus) => index.transferCallbackListener({ receiver }, ...surplus),
  transferCallbackHandler: (...surplus) => index.transferCallbackHandler({ receiver }, ...surplus),
};

/** What takes data of any field: only another shape is refused. */
const takesFields: Record<string, (data: never) => unknown> = {
  transferSucceeded: (data) => testing.transferSucceeded(data),
  transferFailed: (data) => testing.transferFailed(data),
};

const ofReceiver = 'The receiver calls it.';
const ofHost = 'The host calls it, with what it has.';
const ofPackage = 'The package makes these errors, with the options of `Error`.';
const noOptions = 'It has no options, and does the same with any surplus argument.';
const isData = 'It is data.';
const ofRouter = 'The router calls it, with the request of any host.';

/** Gives one reason for several names. */
const because = (reason: string, names: readonly string[], render = (name: string): string => name): object =>
  Object.fromEntries(names.map((name) => [render(name), reason]));
const signatures = ['hmacSignature', 'publicKeySignature', 'messageSignature'];
const withoutOptions = ['urlToken', 'transferToken', 'headerToken', 'ipAllowList'];

/** What must take any object, and why. */
const takesAnything: Record<string, string> = {
  'transferCallbackRouter()': ofHost,
  'transferCallbackListener()': ofHost,
  'transferCallbackHandler()': 'Beside the request hosts pass parameters, an address or a server.',
  ...because(ofRouter, [...withoutOptions, 'basicAuth', ...signatures], (name) => `${name}()`),
  ...because(ofRouter, signatures, (name) => `${name}().explain`),
  ...because(noOptions, [...withoutOptions, 'openTelemetryMetrics', 'prometheusMetrics']),
  ...because(noOptions, ['transferToken().urlFor', 'headerToken().sign', 'basicAuth().sign', 'store.migrate']),
  ...because(noOptions, ['transferCallbackReceiver().inspect', 'transferCallbackReceiver().check']),
  ...because(ofReceiver, ['store.claim', 'store.read', 'store.forget', 'store.check']),
  ...because(ofReceiver, ['defineService().readCallback', 'defineService().ask', 'transferService().readCallback']),
  ...because(ofReceiver, ['transferService().ask', 'transferService().seemsFinal']),
  ...because(noOptions, ['openTelemetryMetrics()', 'prometheusMetrics()']),
  ...because(
    noOptions,
    ['transfers', 'setScenario', 'resend', 'contradict', 'advance', 'idle', 'close'],
    (name) => `transferSandbox().${name}`,
  ),
  ...because(ofPackage, ['TransferCallbackError', 'TransferClientError', 'ReconciliationError']),
  transferCallbackSchema: 'It is a schema of zod, with the methods of zod.',
  invalidCallbacks: isData,
  storeContract: isData,
  transferScenarios: isData,
};

/** What the exports return. */
const returned: Record<string, unknown> = {
  'transferCallbackReceiver()': receiver,
  'transferCallbackRouter()': index.transferCallbackRouter({ receiver }),
  'transferCallbackListener()': index.transferCallbackListener({ receiver }),
  'transferCallbackHandler()': index.transferCallbackHandler({ receiver }),
  'urlToken()': index.urlToken(secret),
  'transferToken()': index.transferToken(secret),
  'headerToken()': index.headerToken('x-token', secret),
  'basicAuth()': index.basicAuth({ username: 'service', password: secret }),
  'ipAllowList()': index.ipAllowList(['203.0.113.7']),
  'hmacSignature()': signature,
  'publicKeySignature()': index.publicKeySignature(signedBody),
  'messageSignature()': index.messageSignature(signedMessage),
  'transferService()': payouts,
  'defineService()': asked,
  'openTelemetryMetrics()': recording.openTelemetryMetrics(meter),
  'prometheusMetrics()': recording.prometheusMetrics(prometheus),
  'storeContract[]': contract,
  'transferSandbox()': sandbox,
};

const stores = [store, sqlStore, ...[index.redisStore(redis), index.mysqlStore(mysqlPool), index.sqlStore(library)]];
/** Whose result is data, or a promise of it. */
const returnsData = [
  ...['closeOnSignal', 'inspectTransfer', 'reconcileTransfer', 'reconcileTransfers'],
  ...['transferSucceeded', 'transferFailed', 'deliver'],
];

const isFunction = (value: unknown): value is (...args: never) => unknown => typeof value === 'function';
const isClass = (value: unknown): boolean => isFunction(value) && value.toString().startsWith('class');
const findMethods = (value: unknown): string[] =>
  Object.entries(value as object).flatMap(([name, member]) => (isFunction(member) ? [name] : []));

/** The error of a call that is refused: `receive` resolves with an outcome that has it. */
async function findError(refused: () => unknown): Promise<unknown> {
  let result: unknown;
  try {
    result = await refused();
  } catch (error) {
    return error;
  }
  const { outcome, error } = (result ?? {}) as { outcome?: unknown; error?: unknown };
  return outcome === 'unauthorized' ? error : expect.fail('It was taken.');
}

const refusal = (message: string): object =>
  expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(message) as string }) as object;

const taking = Object.entries(takesOptions).map(([name, [call, known, required]]) => ({ name, call, known, required }));

test.each(taking)(
  '$name refuses an unknown option, and names the one that was meant',
  async ({ call, known, required }) => {
    const misspelt = known.slice(0, 2) + known.slice(3);
    const near = { ...required, [misspelt]: undefined };
    expect(await findError(() => call(near as never))).toEqual(
      refusal(`Unknown option \`${misspelt}\`. Did you mean \`${known}\`?`),
    );
    const unheardOf = { ...required, unheardOf: undefined };
    expect(await findError(() => call(unheardOf as never))).toEqual(refusal('Unknown option `unheardOf`'));
  },
);

/** The options of a mistake: a bare value, a list, a function, what was not awaited, a signal. */
const shapes = [
  25_000,
  true,
  'a text',
  ['a text'],
  [],
  () => undefined,
  Promise.resolve({}),
  AbortSignal.abort(),
  new Map(),
];

test.each(taking)('$name refuses a value that is no object with options', async ({ call }) => {
  for (const shape of shapes) expect(await findError(() => call(shape as never))).toEqual(refusal('Expected `'));
});

test.each(Object.entries(takesNone))('%s refuses options, because it has none', async (_name, call) => {
  const surplus = [{ unheardOf: 1 }, () => true, secret];
  for (const each of surplus) {
    expect(await findError(() => call(each as never))).toEqual(refusal('Expected `options` to be left out'));
  }
});

test.each(Object.entries(takesFields))('%s takes any field, and refuses a value that has none', async (_name, call) => {
  expect(call({ fee: 5 } as never)).toMatchObject({ data: { fee: 5 } });
  for (const wrong of ['payout-1', 5, null, ['payout-1']]) {
    expect(await findError(() => call(wrong as never))).toEqual(refusal('Expected `data` to be'));
  }
});

test('every export, and every method of what exports return, refuses options or has a reason not to', () => {
  const { exports } = JSON.parse(readFileSync('package.json', 'utf8')) as { exports: object };
  expect(Object.keys(entries)).toEqual(Object.keys(exports).filter((name) => name !== './package.json'));

  const factories = Object.keys(exported).filter((name) => isFunction(exported[name]) && !isClass(exported[name]));
  const judged = factories.filter((name) => !name.endsWith('Store') && !returnsData.includes(name));
  expect(Object.keys(returned)).toEqual(expect.arrayContaining(judged.map((name) => `${name}()`)));

  const methods = Object.entries(returned).flatMap(([name, value]) => [
    ...(isFunction(value) ? [name] : []),
    ...findMethods(value).map((method) => `${name}.${method}`),
  ]);
  const ofStores = stores.flatMap(findMethods).map((method) => `store.${method}`);
  const rows = [takesOptions, takesNone, takesFields, takesAnything].flatMap((table) => Object.keys(table));
  expect([...new Set(rows)].sort()).toEqual([...new Set([...Object.keys(exported), ...methods, ...ofStores])].sort());
});
