// Everything in both packages that takes options.
import { transferCallbackReceiver, transferCallbackRouter } from 'transfer-callbacks';
import * as root from 'transfer-callbacks';
import {
  defineService,
  inspectTransfer,
  reconcileTransfer,
  reconcileTransfers,
  transferService,
} from 'transfer-callbacks/client';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { deliver, transferSandbox } from 'transfer-sandbox';
import * as app from './app.js';

const { memoryStore, pgStore, redisStore } = root;
const { aborted, hmac, id, key, keys, knex, message, noPool, pool, privateKey, publicKey, read, receiver } = app;
const { receiverOptions, redis, reversing, reversingOptions, secret, server, service, signHmac, states, url } = app;

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

/** Everything that takes options, with the other options that it requires. */
export const makers: readonly [name: string, make: Make][] = [
  ['transferCallbackReceiver', (options) => transferCallbackReceiver({ ...receiverOptions, ...options })],
  [
    'a receiver of refunds',
    (options) =>
      transferCallbackReceiver({ ...('service' in options ? receiverOptions : reversingOptions), ...options } as never),
  ],
  ['confirm', (confirm) => transferCallbackReceiver({ ...receiverOptions, confirm })],
  ['transferCallbackRouter', (options) => transferCallbackRouter({ ...receiverOptions, ...options })],
  ['transferCallbackRouter with a receiver', (options) => transferCallbackRouter({ receiver, ...options })],
  ['receive', (options) => receive(options)],
  ['receiver.close', (options) => transferCallbackReceiver(receiverOptions).close(options)],
  ['RetryLater', (options) => new root.RetryLater('The ledger is closed', options)],
  ['memoryStore', (options) => memoryStore(options)],
  ['redisStore', (options) => redisStore(redis, options)],
  ['pgStore', (options) => pgStore(pool, options)],
  ['knexStore', (options) => root.knexStore(knex, { dialect: 'postgres', ...options })],
  ['postgresJsStore', (options) => root.postgresJsStore({ unsafe: () => undefined, begin: () => undefined }, options)],
  ['store.prune', (options) => pgStore(noPool).prune(options as never)],
  ['transferService', (options) => transferService({ ...keys, ...options })],
  ['createTransfer', (options) => service.createTransfer({ callbackUrl: url }, { signal: aborted, ...options })],
  ['getTransaction', (options) => service.getTransaction(id, options)],
  ['defineService', (options) => defineService({ read, states, ...options } as never)],
  [
    'reconcileTransfers',
    (options) => {
      const reconciling = { receiver: 'paid' in options ? reversing : receiver, pending: [], ...options };
      return reconcileTransfers(reconciling as never);
    },
  ],
  // A signal that has aborted keeps both from asking the service.
  ['reconcileTransfer', (options) => reconcileTransfer({ receiver, id, signal: aborted, ...options })],
  ['inspectTransfer', (options) => inspectTransfer({ receiver, id, signal: aborted, ...options })],
  ['hmacSignature', (options) => root.hmacSignature({ ...hmac, ...options })],
  ['publicKeySignature', (options) => root.publicKeySignature({ ...hmac, publicKeys: publicKey, ...options })],
  ['messageSignature', (options) => root.messageSignature({ url, publicKeys: publicKey, ...options })],
  ['sign', (options) => signHmac.sign('{}', { headers: { 'x-id': '7' }, ...options })],
  ['sign by a key', (options) => key.sign('{}', { secret: privateKey, ...options })],
  ['sign a message', (options) => message.sign('{}', { secret: privateKey, ...options })],
  ['basicAuth', (options) => root.basicAuth({ username: 'service', password: secret, ...options })],
  ['deliver', (options) => deliver(server, '{}', options)],
  [
    'transferSandbox',
    async (options) => {
      const started = await transferSandbox({ console: false, ...options });
      await started.close();
    },
  ],
];

export const makerOf = new Map<string, Make>([
  ...makers,
  ['sqlStore', (options) => root.sqlStore({ dialect: 'postgres', query: () => undefined, ...options } as never)],
  ['request', (request) => service.createTransfer(request as { callbackUrl: string }, { signal: aborted })],
  [
    'afterCommit',
    (options) =>
      handle(({ afterCommit }) => {
        afterCommit((options as { afterCommit: () => void }).afterCommit);
      }),
  ],
]);
