import { once } from 'node:events';
import { Redis } from 'ioredis';
import { createPool, type RowDataPacket } from 'mysql2/promise';
import { mysqlStore, pgStore } from 'transfer-callbacks';
import { expect, onTestFinished, test } from 'vitest';
import { forkApp, kill } from '../support/programs/child.js';
import type { DepositsOptions } from '../support/programs/deposits-app.js';
import { startMariaDb } from '../support/servers/mysql.js';
import { post } from '../support/helpers/post.js';
import { startPostgres } from '../support/servers/postgres.js';
import { startRedis } from '../support/servers/redis.js';

const deposits = Array.from({ length: 20 }, (_, index) => `deposit-${index}`);
const copies = 5;
const table = 'CREATE TABLE credits (deposit varchar(255) NOT NULL)';

/** Starts a server with the store's table and that of the credits. */
const servers: Readonly<
  Record<DepositsOptions['on'], () => Promise<{ url: string; readCredits: () => Promise<string[]> }>>
> = {
  async redis() {
    const server = await startRedis();
    const redis = new Redis(server.url);
    onTestFinished(async () => {
      redis.disconnect();
      await server.stop();
    });
    return { url: server.url, readCredits: () => redis.lrange('credits', 0, -1) };
  },
  async postgres() {
    const server = await startPostgres();
    onTestFinished(() => server.stop());
    const pool = server.pool();
    await pgStore(pool).migrate();
    await pool.query(table);
    return {
      url: server.url,
      readCredits: async () =>
        (await pool.query<{ deposit: string }>('SELECT deposit FROM credits')).rows.map(({ deposit }) => deposit),
    };
  },
  async mysql() {
    const server = await startMariaDb();
    const pool = createPool({ uri: server.url });
    onTestFinished(async () => {
      await pool.end();
      await server.stop();
    });
    await mysqlStore(pool).migrate();
    await pool.query(table);
    return {
      url: server.url,
      readCredits: async () =>
        (await pool.query<RowDataPacket[]>('SELECT deposit FROM credits'))[0].map(({ deposit }) => String(deposit)),
    };
  },
};

async function startApp(options: DepositsOptions): Promise<string> {
  const child = forkApp('deposits-app.ts', options);
  onTestFinished(() => kill(child));
  const [port] = (await once(child, 'message')) as [number];
  return `http://127.0.0.1:${port}`;
}

/** Sends the event until it is acknowledged, as the service does. */
async function send(url: string, id: string): Promise<void> {
  for (let status = 0; status !== 200;) {
    ({ status } = await post(url, { type: 'charge.paid', charge: { id } }));
  }
}

test.each(['redis', 'postgres', 'mysql'] as const)(
  'on %s five concurrent copies of each of 20 deposits, over three processes, are 20 credits',
  async (on) => {
    const { url, readCredits } = await servers[on]();
    const apps = await Promise.all([1, 2, 3].map(() => startApp({ on, url })));
    const sent = deposits.flatMap((id, at) =>
      Array.from({ length: copies }, (_, copy) => send(String(apps[(at + copy) % apps.length]), id)),
    );
    await Promise.all(sent);
    expect((await readCredits()).sort()).toEqual([...deposits].sort());
  },
);
