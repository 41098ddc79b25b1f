// No export, and no method of what an export returns, takes options that it does not know.
import { metrics } from '@opentelemetry/api';
import { readFileSync } from 'node:fs';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { afterAll, expect, test } from 'vitest';
import * as index from 'transfer-callbacks';
import * as client from 'transfer-callbacks/client';
import * as recording from 'transfer-callbacks/metrics';
import * as node from 'transfer-callbacks/node';
import * as testing from 'transfer-callbacks/testing';
import * as web from 'transfer-callbacks/web';
import * as sandboxed from 'transfer-sandbox';
import * as app from './docs/suggestions/app.js';

const entries = {
  '.': index,
  './node': node,
  './web': web,
  './client': client,
  './metrics': recording,
  './testing': testing,
};
const exported = Object.assign({}, sandboxed, ...Object.values(entries)) as Readonly<Record<string, unknown>>;

const { receiver, secret } = app;
const meter = metrics.getMeter('a test');
const prometheus = { Counter, Gauge, Histogram, registers: [new Registry()] };

afterAll(app.closeApp);

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
  'hmacSignature()': app.signHmac,
  'publicKeySignature()': app.key,
  'messageSignature()': app.message,
  'transferService()': app.service,
  'defineService()': app.asked,
  'openTelemetryMetrics()': recording.openTelemetryMetrics(meter),
  'prometheusMetrics()': recording.prometheusMetrics(prometheus),
  'storeContract[]': app.check,
  'transferSandbox()': app.sandbox,
};

const stores = [
  ...[index.memoryStore(), index.redisStore(app.redis), index.sqlStore(app.library)],
  ...[index.pgStore(app.pool), index.mysqlStore(app.mysql)],
];
/** Whose result is data, or a promise of it. */
const returnsData = [
  ...['closeOnSignal', 'inspectTransfer', 'reconcileTransfer', 'reconcileTransfers'],
  ...['transferSucceeded', 'transferFailed', 'deliver'],
];

const isFunction = (value: unknown): value is (...args: never) => unknown => typeof value === 'function';
const isClass = (value: unknown): boolean => isFunction(value) && value.toString().startsWith('class');
const findMethods = (value: unknown): string[] =>
  Object.entries(value as object).flatMap(([name, member]) => (isFunction(member) ? [name] : []));

/** Expects a call to be refused, immediately or by what it returns, with such a message. */
async function expectRefusal(call: () => unknown, message: string): Promise<void> {
  const refused = Promise.resolve().then(call);
  const refusal = { code: 'INVALID_ARGUMENT', message: expect.stringContaining(message) as string };
  await expect(refused).rejects.toMatchObject(refusal);
}

const taking = Object.entries(app.takesOptions);

test.each(taking)(
  '%s refuses an unknown option, and names the one that was meant',
  async (_name, [call, known, required]) => {
    const misspelt = known.slice(0, 2) + known.slice(3);
    const near = { ...required, [misspelt]: undefined };
    await expectRefusal(() => call(near as never), `Unknown option \`${misspelt}\`. Did you mean \`${known}\`?`);
    const unheardOf = { ...required, unheardOf: undefined };
    await expectRefusal(() => call(unheardOf as never), 'Unknown option `unheardOf`');
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

test.each(taking)('%s refuses a value that is no object with options', async (_name, [call]) => {
  for (const shape of shapes) await expectRefusal(() => call(shape as never), 'Expected `');
});

test.each(Object.entries(takesNone))('%s refuses options, because it has none', async (_name, call) => {
  const surplus = [{ unheardOf: 1 }, () => true, secret];
  for (const each of surplus) {
    await expectRefusal(() => call(each as never), 'Expected `options` to be left out');
  }
});

test.each(Object.entries(takesFields))('%s takes any field, and refuses a value that has none', async (_name, call) => {
  expect(call({ fee: 5 } as never)).toMatchObject({ data: { fee: 5 } });
  for (const wrong of ['payout-1', 5, null, ['payout-1']]) {
    await expectRefusal(() => call(wrong as never), 'Expected `data` to be');
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
  const rows = [app.takesOptions, takesNone, takesFields, takesAnything].flatMap((table) => Object.keys(table));
  expect([...new Set(rows)].sort()).toEqual([...new Set([...Object.keys(exported), ...methods, ...ofStores])].sort());
});
