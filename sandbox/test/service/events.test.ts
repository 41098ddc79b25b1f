import { expect, test } from 'vitest';
import type { TransferSandbox } from 'transfer-sandbox';
import { later } from '../../../test/core/support.js';
import { create, play, query, startReceiver, startSandbox, toText } from './support.js';

const start = Date.parse('2026-01-15T10:30:00.000Z');

/** The events of a sandbox's first transfer, each as its seconds, its type and what tells it from others. */
function events(sandbox: TransferSandbox): string[] {
  return (sandbox.transfers()[0]?.events ?? []).map((event) => {
    const seconds = (event.atMs - start) / 1_000;
    const words = `${seconds} s: ${event.type}`;
    switch (event.type) {
      case 'final':
        return `${words} ${event.status}`;
      case 'attempt':
        return `${words} ${event.attempt.number}, ${toText(event.attempt.response)}`;
      case 'acknowledged':
        return `${words} ${event.number}`;
      case 'queried':
        return `${words} ${String(event.status)}, ${event.times} times`;
      case 'created':
      case 'resent':
        return words;
    }
  });
}

test('the events show a transfer from its creation to the acknowledgement', async () => {
  const { sandbox } = await play('lost-attempts', [500]);
  await sandbox.advance(300_000);
  expect(events(sandbox)).toEqual([
    '0 s: created',
    '1 s: final SUCCESS',
    '1 s: attempt 1, lost',
    '31 s: attempt 2, lost',
    '91 s: attempt 3, 500',
    '211 s: attempt 4, 200',
    '211 s: acknowledged 4',
  ]);
  const attempts = sandbox.transfers()[0]?.events.flatMap((event) => (event.type === 'attempt' ? event.attempt : []));
  expect(attempts).toEqual(sandbox.attempts);
});

test('a resend delivers the same bytes with new attempts, and its acknowledgement changes nothing', async () => {
  const { sandbox, bodies } = await play('success', [200, 500, 200]);
  await expect(sandbox.resend('one')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  await sandbox.advance(1_000);
  await sandbox.resend(String(sandbox.transfers()[0]?.id));
  await sandbox.advance(30_000);
  expect(events(sandbox).slice(2)).toEqual([
    '1 s: attempt 1, 200',
    '1 s: acknowledged 1',
    '1 s: resent',
    '1 s: attempt 1, 500',
    '31 s: attempt 2, 200',
  ]);
  expect(new Set(bodies()).size).toBe(1);
});

test('the events have one entry for consecutive queries with the same response', async () => {
  const sandbox = await startSandbox({ clock: 'manual' });
  await create(sandbox, { externalId: 'query-fails-1' });
  for (let asked = 0; asked < 5; asked += 1) await query(sandbox, 'query-fails-1');
  await sandbox.advance(1_000);
  await query(sandbox, 'query-fails-1');
  expect(events(sandbox)).toEqual([
    '0 s: created',
    '0 s: queried undefined, 2 times',
    '0 s: queried PENDING, 3 times',
    '1 s: final SUCCESS',
    '1 s: queried SUCCESS, 1 times',
  ]);
});

test('a transfer counts its running attempts', async () => {
  const { promise: released, resolve: respond } = later();
  const { sandbox, received } = await play('burst', async (_received, _count, response) => {
    await released;
    response.end();
  });
  const advanced = sandbox.advance(1_000);
  await expect.poll(() => received).toHaveLength(10);
  expect(sandbox.transfers()).toMatchObject([{ underWay: 10, next: undefined }]);
  respond();
  await advanced;
  expect(sandbox.transfers()).toMatchObject([{ underWay: 0, next: undefined }]);
});

test('contradict announces the other outcome under the same id, which a correct endpoint refuses', async () => {
  const handled: string[] = [];
  const note = ({ event }: { event: string }): void => void handled.push(event);
  const url = await startReceiver({ onSuccess: note, onFailed: note });
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url });
  await create(sandbox, { externalId: 'one' });
  await sandbox.advance(1_000);
  await sandbox.contradict('one');
  expect(events(sandbox).slice(1)).toEqual([
    '1 s: final SUCCESS',
    '1 s: attempt 1, 200',
    '1 s: acknowledged 1',
    '1 s: final FAILED',
    '1 s: attempt 1, 422',
  ]);
  expect(handled).toEqual(['transfer.success']);
  expect(sandbox.transfers()).toMatchObject([{ state: 'FAILED', delivered: false, next: { number: 2 } }]);
  expect((await query(sandbox, 'one')).body.data).toMatchObject({ status: 'FAILED' });
});

test('contradict replaces the contradiction that the scenario flip has planned', async () => {
  const { sandbox } = await play('flip');
  await sandbox.advance(1_000);
  await sandbox.contradict('one');
  await sandbox.advance(300_000);
  expect(sandbox.attempts.map(({ body }) => /"status":"(\w+)"/.exec(body)?.[1])).toEqual(['FAILED', 'SUCCESS']);
});

test('contradict rejects for a transfer that is pending, unknown or without a callback URL', async () => {
  const sandbox = await startSandbox({ clock: 'manual' });
  const refused = expect.objectContaining({ code: 'INVALID_ARGUMENT' }) as Error;
  await create(sandbox, { externalId: 'pending', callbackUrl: 'http://127.0.0.1:1/' });
  await expect(sandbox.contradict('pending')).rejects.toEqual(refused);
  await expect(sandbox.contradict('unknown')).rejects.toEqual(refused);
  await create(sandbox, { externalId: 'silent' });
  await sandbox.advance(1_000);
  await expect(sandbox.contradict('silent')).rejects.toEqual(refused);
});
