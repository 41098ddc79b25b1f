import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { describe, expect, test } from 'vitest';
import { post } from '../support/helpers/post.js';
import { root } from '../docs/pages.js';
import { token } from './cases.js';
import { pagePath } from './page.js';
import { withHost } from './start.js';
import { workerDates, workerHost } from './hosts.js';

/** Ends what hangs. */
const stepMs = 600_000;

const headers = { 'X-Callback-Token': token, 'CF-Connecting-IP': '127.0.0.1' };

async function deliver(url: string, callback: unknown): Promise<string> {
  const { status, body } = await post(url, callback, { headers });
  return `${status} ${body}`;
}

/** Sends twenty callbacks and a copy of each, one after the other. */
async function deliverTwenty(url: string): Promise<string[]> {
  const callbacks = Array.from({ length: 20 }, () => transferSucceeded());
  const replies: string[] = [];
  for (const callback of [...callbacks, ...callbacks]) replies.push(await deliver(url, callback));
  return replies;
}

const twenty = [
  ...Array<string>(20).fill('200 {"outcome":"processed"}'),
  ...Array<string>(20).fill('200 {"outcome":"duplicate"}'),
];

const memoryWorker = fileURLToPath(new URL('memory-worker.ts', import.meta.url));

describe.each(workerDates)('a Worker of %s', (date) => {
  test(
    'a Worker that makes a pool in each request handles twenty callbacks of twenty',
    { timeout: stepMs },
    async () => {
      expect(await withHost(workerHost('cloudflare-workers.ts', date), deliverTwenty)).toEqual(twenty);
    },
  );

  test('docs/hosts.md names the Worker', async () => {
    expect(await readFile(join(root, pagePath), 'utf8')).toContain(date);
  });

  test('a Worker in memory handles twenty callbacks of twenty, and then one that outlives its lease', async () => {
    await withHost(workerHost(memoryWorker, date), async (url) => {
      expect(await deliverTwenty(url)).toEqual(twenty);
      expect(await deliver(url, transferSucceeded({ reference: 'slow' }))).toBe('200 {"outcome":"processed"}');
      const count = async (): Promise<unknown> => (await fetch(url)).json();
      const typeOfTimer = date < '2026-02-10' ? 'number' : 'object';
      await expect.poll(count).toEqual({ handled: 21, followed: 21, typeOfTimer });
    });
  });
});
