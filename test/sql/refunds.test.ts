// With RACE_TRANSFERS=400 and `--reporter=default` the counts of each race are printed.
import { Pool } from 'pg';
import { createConnection } from 'mysql2/promise';
import { expect, onTestFinished, test, beforeAll } from 'vitest';
import { pgStore } from 'transfer-callbacks';
import { raceInProcess, transfersOr, race } from '../support/helpers/reversal-race.js';
import { databases } from './databases.js';
import { describeDatabases, libraries, librariesOn } from './libraries.js';
import { post } from '../support/helpers/post.js';
import { announced, factsOf } from '../support/helpers/reversing.js';
import { forkApp } from '../support/programs/child.js';
import { startTwoApps } from '../support/programs/two-apps.js';
import type { AppOptions } from './app.js';
import { makeStore } from './factories.js';
import { isolations, makeGate, windowCases } from '../support/helpers/refund-window.js';

const count = transfersOr(40);
const countOfApps = transfersOr(100);

/** Makes an isolation the default of each connection to come. */
async function setIsolation(url: string, dialect: string, isolation: string): Promise<void> {
  if (dialect === 'postgres') {
    const pool = new Pool({ connectionString: url, max: 1 });
    await pool.query(`ALTER ROLE postgres SET default_transaction_isolation = '${isolation}'`);
    await pool.end();
  } else {
    const connection = await createConnection(url);
    await connection.query(`SET GLOBAL TRANSACTION ISOLATION LEVEL ${isolation}`);
    await connection.end();
  }
}

const tried = databases.filter(({ dialect }) => dialect !== 'sqlite');
describeDatabases(tried, ({ name, dialect }, server) => {
  const races = isolations.flatMap((isolation) =>
    librariesOn(dialect, server).map((library) => [library.name, isolation, library.prepare] as const),
  );

  test.each(races)(
    'each transfer is refunded once with %s and %s, by two receivers with pools of five and of one, while records of successes end and are pruned',
    async (library, isolation, prepare) => {
      await setIsolation(server.url, dialect, isolation);
      const { store, transaction } = await prepare(onTestFinished, 5);
      const { store: other } = await prepare(onTestFinished, 1);
      const wrong = await raceInProcess(
        {
          title: `${library} on ${name}, ${isolation}`,
          count,
          async disturb(id) {
            await store.forget(id, factsOf('SUCCESS', id)).catch(() => false);
            if (Math.random() < 0.1) await store.prune({ olderThanMs: 90_001 }).catch(() => 0);
          },
          mayPayAgain: true,
        },
        { store, other, transaction },
      );
      expect(wrong).toEqual([]);
    },
    60_000 + 1_500 * count,
  );
});

const raced = [
  ['pg', 'PostgreSQL 18'],
  ['mysql2', 'MariaDB'],
  ['Prisma 7', 'PostgreSQL 18'],
  ['Prisma 7', 'MariaDB'],
] as const;

// Without a transaction a process that dies after its handler has succeeded leaves no record: no Redis is raced so.
test.each(raced.flatMap((each) => [[...each, 'go on'] as const, [...each, 'end'] as const]))(
  'with %s on %s each transfer is refunded once while processes are killed and the records of successes %s',
  async (name, database, what) => {
    const { dialect, start } = databases.find((each) => each.name === database) ?? expect.fail();
    const library = libraries.find((each) => each.name === name) ?? expect.fail();
    const { url, stop } = await start();
    onTestFinished(stop);
    const { client, transaction = expect.fail(), close } = (await library.open[dialect]?.(url, 4)) ?? expect.fail();
    const store = makeStore(library, client, dialect);
    await store.migrate();
    const { urls, killWhile } = await startTwoApps((port) =>
      forkApp('../../sql/app.ts', { reverses: true, library: name, dialect, url, port } satisfies AppOptions),
    );
    let isOver = false;
    const killing = killWhile(() => !isOver);
    const wrong = await race({
      title: `${name} on ${database}, records ${what}`,
      count: countOfApps,
      async deliver(to, status, id) {
        const response = await post(urls[to], announced(status, id)).catch(() => undefined);
        return response?.status === 200 || response?.status === 422;
      },
      disturb: what === 'end' ? (id) => store.forget(id, factsOf('SUCCESS', id)).catch(() => false) : undefined,
      countBookings: (status, id) => transaction.count(`${status} ${id}`),
      mayPayAgain: what === 'end',
    });
    isOver = true;
    expect(await killing).toBeGreaterThan(0);
    await close();
    expect(wrong).toEqual([]);
  },
  120_000 + 2_000 * countOfApps,
);

describeDatabases(
  databases.filter(({ name }) => name === 'PostgreSQL 18'),
  (_database, server) => {
    let admin: Pool;
    beforeAll(async () => {
      admin = new Pool({ connectionString: server.url, max: 10, options: '-c search_path=public' });
      await pgStore(admin).migrate();
      await makeGate(admin);
      return () => admin.end();
    });

    const all = librariesOn('postgres', server).flatMap(({ name, prepare }) =>
      isolations.map((isolation) => [name, isolation, prepare] as const),
    );

    test.each(all)(
      'with %s and %s nothing is refunded twice, and nothing lost, whatever commits between the snapshot of a claim and its locks',
      async (_name, isolation, prepare) => {
        await admin.query(`ALTER ROLE postgres SET search_path = gated, pg_catalog, public`);
        await admin.query(`ALTER ROLE postgres SET default_transaction_isolation = '${isolation}'`);
        const { store } = await prepare(onTestFinished);
        for (const run of windowCases) await run(store, pgStore(admin), admin);
      },
      120_000,
    );
  },
);
