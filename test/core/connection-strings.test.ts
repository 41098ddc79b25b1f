import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import {
  basicAuth,
  headerToken,
  ipAllowList,
  memoryStore,
  knexStore,
  mysqlStore,
  pgStore,
  sqlStore,
  redisStore,
  RetryLater,
  transferCallbackListener,
  transferCallbackReceiver,
  transferCallbackRouter,
  transferToken,
  urlToken,
} from 'transfer-callbacks';
import {
  defineService,
  reconcileTransfer,
  reconcileTransfers,
  transferService,
  inspectTransfer,
} from 'transfer-callbacks/client';
import { openTelemetryMetrics, prometheusMetrics } from 'transfer-callbacks/metrics';
import { deliver, transferSandbox } from 'transfer-sandbox';
import { receiverOf } from './support.js';

const password = 'hunter2';
const secrets = [
  `postgres://payouts:${password}@db/payouts`,
  `redis://:${password}@cache`,
  // As read from a file.
  `redis://:${password}@cache\n`,
  `https://ada:${password}@127.0.0.1:9`,
  `host=db password=${password}`,
  `ada:${password}`,
  // A generated secret, such as an API key.
  `${password}-9f8e7d6c5b4a39`,
];

const fitting = (): unknown => () => ({});
const receiverOptions = { store: memoryStore(), onSuccess: fitting(), onFailed: fitting(), logger: false };
const credentials = { baseUrl: 'https://example.com', apiKey: 'a', apiSecret: 'b' };
// It knows no transfer: a query of a service that is not there is repeated after a pause.
const asked = transferService({ ...credentials, fetch: () => Promise.resolve(new Response(null, { status: 404 })) });
const times = 'verifyTimeoutMs confirmTimeoutMs inFlightWaitMs leaseMs handlerTimeoutMs storeTimeoutMs retentionMs';
const receiver = `store onSuccess onFailed onReversed onOther service confirm onOutcome logger ${times}`;
const pass = 'receiver pending minAgeMs concurrency queriesPerSecond limit cursor signal onProgress schema';
const definition = 'payload read states verify query baseUrl timeoutMs fetch';
// Without `host`, for which the system is asked: see sandbox/test/service.
const sandbox =
  'port apiKey apiSecret seed finalAfterMs speed clock scenario callbackUrl callbackHeaders console onAttempt';

/** A function, arguments that it accepts, and the options that its last argument may have. */
const functions: [name: string, call: (...given: never[]) => unknown, args: unknown[], options: string][] = [
  ['transferCallbackReceiver', transferCallbackReceiver, [receiverOptions], receiver],
  ['transferCallbackRouter', transferCallbackRouter, [receiverOptions], `${receiver} verify bodyLimitBytes receiver`],
  ['transferCallbackListener', transferCallbackListener, [receiverOptions], `${receiver} verify bodyLimitBytes receiver`],
  ['receiver.inspect', (id) => receiverOf().inspect(id), ['id'], ''],
  ['receiver.forget', (id, given) => receiverOf().forget(id, given), ['id', { fingerprint: '[]', by: 'ada', reason: 'why' }], 'fingerprint by reason'],
  ['receiver.close', (given) => receiverOf().close(given), [{}], 'timeoutMs'],
  ['memoryStore', memoryStore, [{}], 'maxEntries'],
  ['redisStore', redisStore, [{ evalSha: 1 }, {}], 'prefix'],
  ['pgStore', pgStore, [{ connect: fitting() }, {}], 'table schema idleTimeoutMs'],
  ['mysqlStore', mysqlStore, [{ getConnection: fitting(), query: fitting() }, {}], 'table schema idleTimeoutMs'],
  ['knexStore', knexStore, [{ raw: fitting(), transaction: fitting() }, { dialect: 'mysql' }], 'table schema idleTimeoutMs'],
  ['sqlStore', sqlStore, [{ dialect: 'sqlite', query: fitting() }, {}], 'table schema idleTimeoutMs'],
  ['urlToken', urlToken, ['a-secret-of-16-characters'], ''],
  ['transferToken', transferToken, ['a-secret-of-16-characters'], ''],
  ['urlFor', (base, id) => transferToken('a-secret-of-16-characters').urlFor(base, id), ['https://example.com', 'payout-1'], ''],
  ['headerToken', headerToken, ['X-Token', 'a-secret-of-16-characters'], ''],
  ['basicAuth', basicAuth, [{ username: 'ada', password: 'secret' }], 'username password'],
  ['ipAllowList', ipAllowList, [['127.0.0.1']], ''],
  ['an entry of ipAllowList', (entry) => ipAllowList([entry]), ['127.0.0.1'], ''],
  ['RetryLater', (...given) => new RetryLater(...given), ['why', {}], 'retryAfterMs'],
  ['transferService', transferService, [credentials], 'payload baseUrl apiKey apiSecret timeoutMs fetch readTransaction'],
  ['defineService', defineService, [{ read: fitting(), states: { paid: 'SUCCESS', bounced: 'FAILED' } }], definition],
  ['reconcileTransfers', reconcileTransfers, [{ receiver: receiverOf({ service: asked }), pending: [] }], pass],
  ['reconcileTransfer', reconcileTransfer, [{ receiver: receiverOf({ service: asked }), id: 'a' }], 'id receiver signal'],
  ['inspectTransfer', inspectTransfer, [{ id: 'a', receiver: receiverOf() }], 'id receiver signal'],
  ['prometheusMetrics', prometheusMetrics, [{}], 'Counter Gauge Histogram registers'],
  ['openTelemetryMetrics', openTelemetryMetrics, [{}], 'createCounter'],
  ['transferSandbox', async (...given) => (await transferSandbox(...given)).close(), [{}], sandbox],
  ['deliver', deliver, [(_request: unknown, response: ServerResponse) => response.end(), {}, {}], 'path headers copies concurrent retry attemptTimeoutMs'],
]; // prettier-ignore

/** The arguments with `secret` in the place of each one, of each option, and of the name of an option. */
function* misuses(args: unknown[], options: string, secret: string): Generator<unknown[]> {
  for (const index of args.keys()) yield args.with(index, secret);
  const last = args.at(-1);
  if (typeof last !== 'object' || last === null) return;
  for (const name of [...options.split(' '), secret]) yield args.with(-1, { ...last, [name]: secret });
  yield args.with(-1, Object.assign({}, secret));
}

test.each(functions)('no error of %s shows a secret, wherever it is passed', async (_name, call, args, options) => {
  let refused = 0;
  for (const secret of secrets) {
    for (const given of misuses(args, options, secret)) {
      try {
        await call(...(given as never[]));
      } catch (error) {
        refused += 1;
        expect((error as Error).stack).not.toContain(password);
      }
    }
  }
  expect(refused).toBeGreaterThan(0);
});

test('an error shows short words, numbers and IPv4 addresses, and of any other text its length', () => {
  const refuse = (leaseMs: unknown) => () => receiverOf({ leaseMs: leaseMs as number });
  for (const shown of ['', '15 s', 'ten', '-1', '1.2.3.4/255.0.0.0', 'a_b', 'x'.repeat(19)]) {
    expect(refuse(shown)).toThrow(`got "${shown}".`);
  }
  for (const hidden of ['x'.repeat(20), 'a:b', 'a@b', 'a=b', '"', '\u202e', '\n', 'é']) {
    expect(refuse(hidden)).toThrow(`got a string of ${hidden.length} characters.`);
  }
  expect(refuse(Symbol(password))).toThrow('got a symbol.');
});

test('an unknown option is named if it looks like a name', () => {
  const refuse = (name: string) => () => receiverOf({ [name]: 1 });
  for (const shown of ['a', 'on_success', '$', '0', 'x'.repeat(40)])
    expect(refuse(shown)).toThrow(`option \`${shown}\``);
  for (const hidden of ['', 'x'.repeat(41), 'a:b', '\u202e']) {
    expect(refuse(hidden)).toThrow(`Unknown option with a name of ${hidden.length} characters; known are store, `);
  }
});
