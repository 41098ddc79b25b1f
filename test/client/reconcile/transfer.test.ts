import { describe, expect, test, vi } from 'vitest';
import { reconcileTransfer, reconcileTransfers } from 'transfer-callbacks/client';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { receiverOf } from '../../core/support.js';
import { registerMetrics } from '../../metrics/support.js';
import { final, old, startKnowing, startQueries, serving } from '../support.js';

const open = { ...transferSucceeded({ id: 'tr-open', externalId: 'open' }).data, status: 'PENDING' };

describe('reconcileTransfer', () => {
  test('hands a final transfer to the handler once, and its callback is then a duplicate', async () => {
    const success = transferSucceeded();
    const { client } = await startKnowing({ ...success.data });
    const onSuccess = vi.fn();
    const receiver = receiverOf({ onSuccess });
    const id = success.data.externalId;
    expect(await reconcileTransfer({ receiver: serving(receiver, client), id })).toEqual({
      id,
      status: 'SUCCESS',
      result: 'processed',
    });
    expect(await reconcileTransfer({ receiver: serving(receiver, client), id })).toEqual({
      id,
      status: 'SUCCESS',
      result: 'duplicate',
    });
    expect(await receiver.receive(success)).toMatchObject({ outcome: 'duplicate' });
    expect(onSuccess.mock.calls).toEqual([[success, expect.objectContaining({ source: 'reconciliation' })]]);
  });

  test('tells why a transfer was not handled', async () => {
    const { client } = await startKnowing(open, { ...transferSucceeded({ id: 'tr-1' }).data });
    const receiver = receiverOf({ onSuccess: () => Promise.reject(new Error('no')) });
    const tell = (id: string, signal?: AbortSignal) =>
      reconcileTransfer({ receiver: serving(receiver, client), id, signal });
    expect(await tell('open')).toEqual({ id: 'open', status: 'PENDING', result: 'pending', reason: 'not_final' });
    expect(await tell('other')).toMatchObject({ result: 'unknown', error: { status: 404 } });
    expect(await tell('tr-1')).toMatchObject({ result: 'failed', outcome: 'handler_failed' });
    expect(await tell('tr-1', AbortSignal.abort())).toEqual({ id: 'tr-1', result: 'pending', reason: 'not_read' });
    await receiver.close();
    expect(await tell('tr-1')).toEqual({ id: 'tr-1', result: 'pending', reason: 'not_read' });
  });

  test('leaves the metrics of the runs as they were: it knows of one transfer only', async () => {
    const { series } = registerMetrics();
    const { client } = await startQueries((id) => (id === 'open' ? [200, open] : final(id)));
    const receiver = receiverOf();
    await reconcileTransfers({ receiver: serving(receiver, client), pending: [old('open')] });
    const ofPasses = async () =>
      [...(await series())].filter(([name]) => /reconcil(ed|iation_)|open_transfer/.test(name));
    const before = await ofPasses();
    expect(before).toContainEqual(['transfer_callbacks_open_transfers', 1]);
    expect(await reconcileTransfer({ receiver: serving(receiver, client), id: 'tr-1' })).toMatchObject({
      result: 'processed',
    });
    expect(await ofPasses()).toEqual(before);
  });
});
