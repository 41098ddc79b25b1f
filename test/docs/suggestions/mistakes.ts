// Mistakes in both packages that no option of a wrong type makes.
import { Counter, Gauge, Histogram, register } from 'prom-client';
import { expect } from 'vitest';
import { transferCallbackReceiver, transferCallbackRouter } from 'transfer-callbacks';
import * as root from 'transfer-callbacks';
import { defineService, reconcileTransfer, reconcileTransfers, transferService } from 'transfer-callbacks/client';
import { openTelemetryMetrics, prometheusMetrics } from 'transfer-callbacks/metrics';
import { closeOnSignal } from 'transfer-callbacks/node';
import { storeContract, transferSucceeded } from 'transfer-callbacks/testing';
import { deliver } from 'transfer-sandbox';
import * as app from './app.js';

const { memoryStore, pgStore, redisStore } = root;
const { id, key, knex, read, receiver, receiverOptions, reversingOptions, sandbox, secret } = app;
const { server, signHmac, states, transactional, unasked, unaskedOptions, url } = app;

/** Express's request, behind `app.set('trust proxy', true)`. */
const trustingEveryone = { app: { get: () => () => true }, ip: '127.0.0.1' } as never;

async function forgetUntraced(): Promise<void> {
  const store = memoryStore();
  const own = transferCallbackReceiver({ ...receiverOptions, store });
  const callback = transferSucceeded();
  await own.receive(callback);
  const record = await own.inspect(callback.data.id);
  if (record.state !== 'handled') expect.fail(record.state);
  await own.forget(callback.data.id, { fingerprint: record.fingerprint, by: 'a test', reason: 'It is a test.' });
}

/** A check of the contract of stores that needs writes. */
const writing = storeContract.find(({ title }) => title.includes('writes')) ?? expect.fail('There is no such check.');

async function scheduleTooLate(): Promise<void> {
  const created = transferService({ baseUrl: sandbox.baseUrl, ...sandbox.keys.valid });
  await created.createTransfer({ callbackUrl: 'http://127.0.0.1:1', externalId: id });
  sandbox.setScenario(id, 'success');
}

/** Mistakes that no options of a maker make. The code of an error is an expression, or options of the maker. */
export const mistakes: readonly [mistake: string, raise: () => unknown, maker?: string][] = [
  ['a URL for a client of Redis', () => redisStore('redis://127.0.0.1' as never)],
  ['a URL for a pool', () => pgStore('postgres://127.0.0.1' as never)],
  ['a URL for a pool of MySQL', () => root.mysqlStore('mysql://127.0.0.1' as never)],
  ['a URL for a library', () => root.postgresJsStore('postgres://127.0.0.1' as never)],
  [
    'a transaction for a library',
    () => root.knexStore({ ...knex, isTransaction: true } as never, { dialect: 'mysql' }),
  ],
  ['no database', () => root.sqlStore({} as never)],
  ['no name of a header', () => root.headerToken('', secret)],
  ['a header that proxies drop', () => root.headerToken('connection', secret)],
  ['no secret', () => root.urlToken(undefined)],
  ['a number for a secret', () => root.urlToken(7 as never)],
  ['a slash in a secret of the path', () => root.urlToken('a/secret/with/slashes')],
  ['no credentials', () => root.basicAuth([] as never)],
  ['a string for credentials', () => root.basicAuth('service' as never)],
  ['no addresses', () => root.ipAllowList([])],
  ['a name for an address', () => root.ipAllowList(['localhost'])],
  ['an app that trusts every proxy', () => root.ipAllowList(['127.0.0.1'])(trustingEveryone)],
  ['a path for a URL', () => root.transferToken(secret).urlFor('/callbacks', id)],
  ['no externalId for a URL', () => root.transferToken(secret).urlFor(url, '')],
  [
    'an event that nobody vouches for',
    () => transferCallbackRouter({ ...reversingOptions, confirm: true }),
    'transferCallbackRouter',
  ],
  ['a verifier beside the options', () => transferCallbackRouter({ receiver }, ...([() => true] as never[]))],
  ['an object to sign', () => signHmac.sign({} as never)],
  ['no signed header', () => signHmac.sign('{}'), 'hmacSignature().sign'],
  ['another private key', () => key.sign('{}', { secret: 7 as never })],
  ['no service to ask', () => reconcileTransfer({ receiver: unasked, id }), 'transferCallbackReceiver'],
  ['no address of the service', () => transferService({} as never), 'transferService'],
  ['no id', () => receiver.inspect('')],
  ['nobody who forgets', () => receiver.forget(id, { fingerprint: '[]', by: '', reason: 'A test' })],
  ['no trace of what is forgotten', forgetUntraced],
  ['a number for the reason to wait', () => new root.RetryLater(5 as never)],
  ['nothing to confirm by', () => transferCallbackReceiver({ ...unaskedOptions, confirm: true })],
  ['paid transfers that are never reversed', () => reconcileTransfers({ receiver, paid: [] })],
  ['an app for a server', () => closeOnSignal({} as never, receiver)],
  ['no receiver to close', () => closeOnSignal(server, {} as never)],
  ['an endless close', () => closeOnSignal(server, receiver, { timeoutMs: -1 })],
  ['another meter', () => openTelemetryMetrics({} as never)],
  ['no client of Prometheus', () => prometheusMetrics(undefined as never)],
  ['another client of Prometheus', () => prometheusMetrics({} as never)],
  ['one registry', () => prometheusMetrics({ Counter, Gauge, Histogram, registers: register } as never)],
  ['a string for a callback', () => transferSucceeded('payout-1' as never)],
  ['a transactional store without a transaction', () => writing.check(transactional)],
  ['no callback', () => deliver(server, undefined)],
  ['no target', () => deliver({} as never, '{}')],
  ['a target of another scheme', () => deliver('ftp://127.0.0.1', '{}')],
  ['time that runs backwards', () => sandbox.advance(-1)],
  ['a transfer that is not final', () => sandbox.resend('unknown')],
  ['a scenario that comes too late', scheduleTooLate],
];

/** Mistakes in the options of a maker, beside the other options that it requires. */
export const wrongOptions: readonly [mistake: string, maker: string, options: object][] = [
  ['no dialect', 'knexStore', { dialect: undefined }],
  ['no transaction', 'a store on `query` alone', {}],
  ['a day of retention for a prune', 'store.prune', { olderThanMs: 1 }],
  ['two tokens of the path', 'transferCallbackRouter', { verify: [root.urlToken(secret), root.transferToken(secret)] }],
  ['a secret of another encoding', 'hmacSignature', { secretEncoding: 'hex' }],
  ['a short secret in hex', 'hmacSignature', { secretEncoding: 'hex', secrets: 'ab'.repeat(15) }],
  ['no request', 'request', {}],
  ['no function', 'afterCommit', { afterCommit: undefined }],
  ['a store that cannot claim both', 'a receiver of refunds', { store: transactional }],
  ['no retention', 'a receiver of refunds', { retentionMs: undefined }],
  ['an hour of retention', 'a receiver of refunds', { retentionMs: 3_600_000 }],
  ['a confirm without a value', 'transferCallbackReceiver', { confirm: undefined }],
  ['a lease that its store outlasts', 'transferCallbackReceiver', { storeTimeoutMs: 6_000 }],
  ['a handler of reversals that never come', 'transferCallbackReceiver', { onReversed: () => undefined }],
  ['no states', 'defineService', { states: [] }],
  ['a state that cannot be printed', 'defineService', { states: { '\n': 'SUCCESS' } }],
  ['a meaning that there is not', 'defineService', { states: { paid: 'PAID' } }],
  ['no state of a success', 'defineService', { states: { bounced: 'FAILED' } }],
  ['a name of a header with a blank', 'deliver', { headers: { 'a b': '1' } }],
  ['the host as a header', 'deliver', { headers: { host: '1' } }],
  ['a header of two lines', 'deliver', { headers: { 'x-a': '1\n2' } }],
  ['a service that cannot sign', 'deliver', { service: defineService({ read, states, verify: key }) }],
  ['a speed beside a manual clock', 'transferSandbox', { clock: 'manual', speed: 2 }],
];
