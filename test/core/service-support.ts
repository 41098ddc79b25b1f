import { vi } from 'vitest';
import { memoryStore, transferCallbackReceiver, type ReceiverOptions } from 'transfer-callbacks';
import { defineService, type ServiceOptions } from 'transfer-callbacks/client';
import { recordingLogger } from '../support/helpers/logger.js';

export const states = {
  'payout.paid': 'SUCCESS',
  'payout.bounced': 'FAILED',
  'payout.waiting': 'PENDING',
} as const;

/** What the service sends of a transfer, with changes in its `data`. */
export function announced(event: string, changes: object = {}) {
  return { event, data: { id: 7, reference: 'payout-1', amount: 100, currency: 'XAF', ...changes } };
}

export function read({ event, data }: ReturnType<typeof announced>): object {
  const { id, reference, amount, currency } = data;
  return { state: event, id, externalId: reference, amount, currency };
}

/** An option may be wrong here. */
export function define(changes: object = {}) {
  const definition: object = { read, states, ...changes };
  return defineService(definition as ServiceOptions<unknown, { state: string }, typeof states>);
}

/** Makes a receiver of a service, and notes what its handlers get and what it logs. */
export function serve(definition: object = {}, options: object = {}) {
  const handled: unknown[] = [];
  const note = (callback: unknown): void => void handled.push(callback);
  const logger = { ...recordingLogger(), info: vi.fn() };
  const common: object = { store: memoryStore(), onSuccess: note, onFailed: note, logger };
  const given: object = { ...common, service: define(definition), ...options };
  const receiver = transferCallbackReceiver(given as ReceiverOptions);
  return { receiver, receive: receiver.receive.bind(receiver), handled, logger };
}
