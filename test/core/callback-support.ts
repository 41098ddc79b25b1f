import { expect } from 'vitest';
import { memoryStore, transferCallbackReceiver, type TransferCallback } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { toResponse } from '../../src/http/responses.js';
import fc from '../support/helpers/fast-check.js';
import { errorBody } from '../support/helpers/post.js';

export type Json = Record<string, unknown>;
export interface Loose {
  event: unknown;
  data: Json;
}

export const bankAccount = { accountNumber: '10005000010123456789', holder: { name: 'Élodie' } };
export const bankPayout = { paymentMethod: 'bank', walletNumber: null, bankAccount } as const;
export const shapes: [string, () => TransferCallback][] = [
  ['a success to a wallet', () => transferSucceeded()],
  ['a success to a bank account', () => transferSucceeded(bankPayout)],
  ['a failure to a wallet', () => transferFailed()],
  ['a failure to a bank account', () => transferFailed(bankPayout)],
];

export const textFields = [
  'id',
  'externalId',
  'reference',
  'currency',
  'provider',
  'timestamp',
  'externalReference',
  'vouchercode',
];

/** What a receiver makes of a body, what the response is, and which callbacks have reached a handler. */
export async function received(body: unknown) {
  const handled: TransferCallback[] = [];
  const note = (callback: TransferCallback): number => handled.push(callback);
  const receiver = transferCallbackReceiver({ store: memoryStore(), onSuccess: note, onFailed: note, logger: false });
  const outcome = await receiver.receive(body);
  const { status, body: said } = toResponse(outcome);
  return { outcome, handled, status, body: said };
}

/** Expects a body to be refused, for exactly these places in it, the first of which the response names. */
export async function expectRefused(body: unknown, ...paths: string[]): Promise<void> {
  const { outcome, handled, status, body: said } = await received(body);
  const issues = outcome.outcome === 'invalid' ? outcome.issues : [];
  expect(outcome.outcome).toBe('invalid');
  // One place may have several faults: an empty list is no text, and too short a one.
  expect([...new Set(issues.map(({ path }) => path.join('.')))]).toEqual(paths);
  const where = paths[0] === '' ? '' : ` See ${paths[0] ?? ''}.`;
  expect([status, said]).toEqual([400, errorBody(400, `This is not the expected callback.${where}`)]);
  expect(handled).toEqual([]);
}

export function changed(callback: TransferCallback, data: Json): Loose {
  return { event: callback.event, data: { ...callback.data, ...data } };
}

/** Any text whatsoever, lone surrogates and control characters included. */
export const text = fc.string({
  unit: fc.oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
    fc.constantFrom('\ud800', '\udfff', '\u202e'),
  ),
});
export const amount = fc
  .oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }))
  .filter((value) => !Number.isInteger(value) || Number.isSafeInteger(value));
