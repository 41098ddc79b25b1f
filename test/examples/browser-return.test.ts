import express from 'express';
import { memoryStore, transferCallbackReceiver, type TransferCallback } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { expect, onTestFinished, test } from 'vitest';
import { addReturn } from '../../examples/browser-return.js';
import { startKnowing } from '../client/support.js';
import { serve } from '../support/servers/serve.js';

test('the return of the browser handles the transfer as the service reports it, whatever the customer writes, once beside the callback', async () => {
  const callback = transferSucceeded();
  const { externalId: id } = callback.data;
  const transaction = { ...callback.data, status: 'PENDING' };
  const other = transferSucceeded(); // of another customer
  const service = await startKnowing(transaction, { ...other.data });
  let state: 'open' | 'paid' | 'failed' = 'open';
  const handled: string[][] = [];
  const close = ({ event, data }: TransferCallback, to: 'paid' | 'failed') => {
    handled.push([event, data.externalId]);
    state = to;
  };
  const receiver = transferCallbackReceiver({
    service: service.client,
    store: memoryStore(),
    onSuccess: (given) => {
      close(given, 'paid');
    },
    onFailed: (given) => {
      close(given, 'failed');
    },
    logger: false,
  });
  const app = express();
  addReturn(app, receiver, { findPayout: () => Promise.resolve({ id, state }) });
  const shop = await serve(app);
  onTestFinished(shop.close);
  const forge = async (status: string): Promise<unknown> => {
    const query = new URLSearchParams({
      status,
      event: `transfer.${status.toLowerCase()}`,
      id: other.data.id,
      externalId: id,
    });
    return (await fetch(`${shop.url}/payouts/return?${query.toString()}`)).json();
  };

  for (const status of ['SUCCESS', 'FAILED']) expect(await forge(status)).toEqual({ state: 'open' });
  expect(handled).toEqual([]);

  Object.assign(transaction, { status: 'SUCCESS' });
  expect(await Promise.all([forge('FAILED'), forge('SUCCESS')])).toEqual([{ state: 'paid' }, { state: 'paid' }]);
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'duplicate' });
  expect(await forge('FAILED')).toEqual({ state: 'paid' });
  expect(handled).toEqual([['transfer.success', id]]);
}, 60_000);
