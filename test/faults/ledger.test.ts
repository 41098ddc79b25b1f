import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Pool } from 'pg';
import { pgStore } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { forkApp, kill } from '../support/child.js';
import type { LedgerOptions } from '../support/ledger-app.js';
import { freePort } from '../support/port.js';
import { post } from '../support/post.js';
import { startPostgres, type PostgresServer } from '../support/postgres.js';
import { startRedis, type RedisServer } from '../support/redis.js';

let postgres: PostgresServer;
let redis: RedisServer;
let pool: Pool;
const children = new Set<ChildProcess>();

beforeAll(async () => {
  [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
  pool = postgres.pool();
  await pgStore(pool).migrate();
  await pool.query('CREATE TABLE ledger (callback text NOT NULL, store text NOT NULL)');
});
afterAll(async () => {
  await Promise.all([...children].map(kill));
  await Promise.all([postgres.stop(), redis.stop()]);
});

interface App {
  readonly port: number;
  readonly child: ChildProcess;
}

/** Counts the transactions that are open on idle connections. */
async function countOpenTransactions(): Promise<number | null> {
  const { rowCount } = await pool.query("SELECT FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'");
  return rowCount;
}

async function startApp(store: LedgerOptions['store'], port: number): Promise<App> {
  const options: LedgerOptions = { store, port, postgresUrl: postgres.url, redisUrl: redis.url };
  const child = forkApp('ledger-app.ts', 'LEDGER', options);
  children.add(child);
  const ended = once(child, 'exit').then(() => expect.fail('The app has ended.'));
  ended.catch(() => undefined);
  const [listensOn] = (await Promise.race([once(child, 'message'), ended])) as [number];
  return { port: listensOn, child };
}

const callbackCount = 5_000;
const senders = 32;

function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, place: Math.random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item);
}

/**
 * Delivers 5 000 callbacks one to five times each, to two processes that are killed at random moments, with the
 * database restarted in the middle. Each delivery is repeated until it is acknowledged: nothing is given up.
 */
async function deliverAll(store: LedgerOptions['store']) {
  const ports = [await freePort(), await freePort()] as const;
  const apps = await Promise.all([startApp(store, ports[0]), startApp(store, ports[1])]);
  const callbacks = Array.from({ length: callbackCount }, (_, index) =>
    index % 3 === 0 ? transferFailed() : transferSucceeded(),
  );
  const deliveries = shuffled(callbacks.flatMap((callback, index) => Array<object>((index % 5) + 1).fill(callback)));
  const planned = deliveries.length;
  let kills = 0;
  let restarts = 0;
  let done = false;

  async function sendAll(sender: number): Promise<void> {
    for (let callback = deliveries.pop(); callback !== undefined; callback = deliveries.pop()) {
      for (let turn = sender; ; turn += 1) {
        const { port } = apps[turn % 2] ?? expect.fail();
        const status = await post(`http://127.0.0.1:${port}/`, callback).then(
          (response) => response.status,
          () => 0,
        );
        if (status === 200) break;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }
  async function killNowAndThen(): Promise<void> {
    while (!done) {
      await new Promise((resolve) => setTimeout(resolve, 200 + Math.random() * 600));
      const victim = Math.random() < 0.5 ? 0 : 1;
      await kill(apps[victim].child);
      kills += 1;
      apps[victim] = await startApp(store, apps[victim].port);
    }
  }
  async function restartInTheMiddle(): Promise<void> {
    while (deliveries.length > planned / 2) await new Promise((resolve) => setTimeout(resolve, 20));
    await postgres.restart();
    restarts += 1;
  }

  const killing = killNowAndThen();
  await Promise.all([restartInTheMiddle(), ...Array.from({ length: senders }, (_, sender) => sendAll(sender))]);
  done = true;
  await killing;
  const { rows } = await pool.query<{ callback: string; times: string }>(
    'SELECT callback, count(*) AS times FROM ledger WHERE store = $1 GROUP BY callback',
    [store],
  );
  const booked = new Map(rows.map(({ callback, times }) => [callback, Number(times)]));
  const lost = callbacks.filter(({ data }) => !booked.has(data.id)).length;
  const doubled = [...booked.values()].filter((times) => times > 1).length;
  const open = await countOpenTransactions();
  return { booked: booked.size, lost, doubled, open, kills, restarts };
}

test('on pgStore the ledger has exactly one row for each of 5 000 callbacks, whatever their handlers do wrong', async () => {
  const { kills, restarts, ...ledger } = await deliverAll('postgres');
  expect(ledger).toEqual({ booked: callbackCount, lost: 0, doubled: 0, open: 0 });
  const { rows } = await pool.query("SELECT count(*)::int AS records FROM transfer_callbacks WHERE fingerprint <> ''");
  expect(rows).toEqual([{ records: callbackCount }]);
  expect(kills).toBeGreaterThan(3);
  expect(restarts).toBe(1);
}, 600_000);

test('on the Redis store no callback is lost, and only those whose process was killed after booking are booked again', async () => {
  const { kills, restarts, booked, lost } = await deliverAll('redis');
  expect({ booked, lost }).toEqual({ booked: callbackCount, lost: 0 });
  expect(kills).toBeGreaterThan(3);
  expect(restarts).toBe(1);
}, 600_000);
