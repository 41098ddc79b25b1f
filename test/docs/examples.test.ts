// The examples of docs/services.md and docs/recipes.md, run as their readers would run them.
import { randomBytes } from 'node:crypto';
import express, { type Express } from 'express';
import { expect, test } from 'vitest';
import * as root from 'transfer-callbacks';
import * as client from 'transfer-callbacks/client';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { receiverOf } from '../core/support.js';
import { post } from '../support/helpers/post.js';
import { serveForTest } from '../support/servers/serve-for-test.js';
import { findBlocks, findPage, runBlock } from './pages.js';

const secret = 'the-secret-of-the-service-0123456789';

interface Example {
  readonly receiver: root.TransferCallbackReceiver;
  readonly app: Express;
}

test('the example of docs/services.md handles what its service sends, and asks it', async () => {
  const payout = { id: 7, reference: 'payout-1', cents: 1999, currency: 'XAF', reason: null };
  const known: Record<string, object> = { '/payouts/8': { state: 'returned', payout: { ...payout, id: 8 } } };
  const serviceUrl = await serveForTest(({ url = '' }, response) => {
    response.writeHead(known[url] === undefined ? 404 : 200).end(JSON.stringify(known[url] ?? {}));
  });
  const booked: string[] = [];
  const process = { env: { SERVICE_URL: serviceUrl, SIGNATURE_SECRET: secret } };
  const book = (payout: string, entry: string) => booked.push(`${payout} ${entry}`);
  const [example = expect.fail('There is no example.')] = findBlocks(findPage('docs/services.md'), 'ts');
  const modules: Record<string, unknown> = { 'transfer-callbacks': root, 'transfer-callbacks/client': client, express };
  const { app, receiver } = await runBlock<Example>(example, (name) => modules[name], { process, book });
  const url = await serveForTest(app);
  const verify = root.hmacSignature({ header: 'x-signature', secrets: secret });
  const send = async (type: string, changes: object = {}, headers?: Record<string, string>): Promise<string> => {
    const body = JSON.stringify({ type, payout: { ...payout, ...changes } });
    const response = await post(`${url}/callbacks/payouts`, body, { headers: headers ?? verify.sign(body) });
    return `${response.status} ${(JSON.parse(response.body) as { outcome?: string }).outcome ?? ''}`.trim();
  };

  expect(await send('payout.pending')).toBe('200 ignored');
  expect(await send('payout.paid')).toBe('200 processed');
  expect(await send('payout.paid')).toBe('200 duplicate');
  expect(await send('payout.returned')).toBe('200 processed');
  expect(await send('payout.bounced', { id: 9, reason: 'Wallet closed' })).toBe('200 processed');
  expect(await send('charge.paid')).toBe('200 ignored');
  expect(await send('payout.strange')).toBe('400');
  expect(await send('payout.paid', { id: 10 }, { 'x-signature': randomBytes(32).toString('hex') })).toBe('401');
  expect(await client.reconcileTransfer({ receiver, id: '8' })).toMatchObject({ result: 'processed' });
  expect(await client.reconcileTransfer({ receiver, id: '11' })).toMatchObject({ result: 'unknown' });
  expect(booked).toEqual([
    ...['payout-1 paid 1999', 'payout-1 refunded', 'payout-1 refunded: Wallet closed', 'payout-1 refunded'],
  ]);
});

test('after a change of the store a callback that the old store has as handled runs nothing', async () => {
  const blocks = findBlocks(findPage('docs/recipes.md'), 'ts');
  const recipe = blocks.find(({ code }) => code.includes('wasHandled')) ?? expect.fail('There is no recipe.');
  const [old, store] = [root.memoryStore(), root.memoryStore()];
  const modules: Record<string, unknown> = {
    ioredis: { Redis: Object },
    pg: { Pool: Object },
    'transfer-callbacks': { ...root, redisStore: () => old, pgStore: () => store },
  };
  const closed: string[] = [];
  const close = (externalId: string, state: string) => closed.push(`${externalId} ${state}`);
  const { receiver } = await runBlock<Example>(recipe, (name) => modules[name], { close });

  const [paid, failed] = [transferSucceeded(), transferFailed()];
  const before = receiverOf({ store: old });
  await before.receive(paid);
  await before.receive(failed);
  const [newPaid, newFailed] = [transferSucceeded(), transferFailed()];
  for (const callback of [paid, failed, newPaid, newFailed]) {
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
  }
  expect(closed).toEqual([`${newPaid.data.externalId} paid`, `${newFailed.data.externalId} failed`]);
});
