import { memoryStore, type ClaimRequest } from 'transfer-callbacks';
import { transferService } from 'transfer-callbacks/client';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { describe, expect, test } from 'vitest';
import { collectGarbage } from '../support/helpers/runtime.js';
import { serve } from './service-support.js';

// What a process keeps by a name or an id that a sender has chosen, after the delivery.

const count = 1_000;
const length = 100_000;

/** Returns a long string as a parser of JSON makes it. */
const makeLong = (index: number): string =>
  JSON.parse(JSON.stringify(`${index}-${crypto.randomUUID()}${'x'.repeat(length)}`)) as string;

/** Returns a part for which V8 keeps the whole string. */
const makeCut = (index: number): string => makeLong(index).slice(0, 40);

function heapBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

/** Resolves with the bytes that are kept of each call. */
async function keptBytes(work: (index: number) => Promise<unknown>): Promise<number> {
  await work(count);
  const before = heapBytes();
  for (let index = 0; index < count; index += 1) await work(index);
  return (heapBytes() - before) / count;
}

describe('of each name or id of 100 kB that a sender has chosen less than 3 kB is kept', () => {
  test.each([
    ['long', makeLong],
    ['the beginning of a long one', makeCut],
  ])('by the count of ignored events, if the name is %s', async (_title, make) => {
    const { receive } = serve({ read: ({ name }: { name: string }) => ({ ignored: name }) }, { logger: false });
    expect(await keptBytes((index) => receive({ name: make(index) }))).toBeLessThan(3_000);
  });

  test('by the memory store, if the id is the beginning of a long one', async () => {
    const store = memoryStore();
    const request = { token: 'token', fingerprint: '[]', leaseMs: 15_000, retentionMs: 60_000 } as ClaimRequest;
    const settle = async (index: number): Promise<void> => {
      const reply = await store.claim(makeCut(index), request);
      if (reply.state === 'claimed') await reply.claim.settle();
    };
    expect(await keptBytes(settle)).toBeLessThan(3_000);
    await settle(0);
  });

  test('by `confirm`, for the callbacks that it has refused for want of time', async () => {
    const keys = { baseUrl: 'http://service.example', apiKey: 'key', apiSecret: 'secret' };
    const { makeConfirm } = transferService({ ...keys, fetch: () => new Promise<never>(() => undefined) });
    const confirm = makeConfirm?.({ concurrency: 1 }) ?? expect.fail();
    const callback = transferSucceeded();
    const { signal } = new AbortController();
    const refuse = (id: string) => confirm({ ...callback, data: { ...callback.data, id } }, { signal });
    for (let waiting = 0; waiting < 5; waiting += 1) void refuse(`waiting-${waiting}`).catch(() => undefined);
    await expect(refuse('one more')).rejects.toThrow('Too many');
    expect(await keptBytes((index) => refuse(makeCut(index)).catch(() => undefined))).toBeLessThan(3_000);
  });
});
