// With RACE_TRANSFERS=400 and `--reporter=default` the counts of each race are printed.
import { Pool } from 'pg';
import { createConnection } from 'mysql2/promise';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { raceInProcess, successOf, transfersOr } from '../support/helpers/reversal-race.js';
import { databases, type Started } from './databases.js';
import { makeStore } from './factories.js';
import { libraries } from './libraries.js';

const count = transfersOr(40);
const isolations = ['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'] as const;

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

describe.each(databases.filter(({ dialect }) => dialect !== 'sqlite'))('on $name', ({ name, dialect, start }) => {
  let server: Started;
  beforeAll(async () => {
    server = await start();
    return () => server.stop();
  }, 120_000);

  const races = isolations.flatMap((isolation) =>
    libraries.flatMap((library) => {
      const open = library.open[dialect];
      return open === undefined ? [] : [[library.name, isolation, { library, open }] as const];
    }),
  );

  test.each(races)(
    'each transfer is refunded once with %s and %s, by two receivers with pools of five and of one, while records of successes end and are pruned',
    async (_library, isolation, { library, open }) => {
      await setIsolation(server.url, dialect, isolation);
      const [one, other] = [await open(server.url, 5), await open(server.url, 1)];
      onTestFinished(async () => {
        await one.close();
        await other.close();
      });
      const store = makeStore(library, one.client, dialect);
      await store.migrate();
      const wrong = await raceInProcess(
        {
          title: `${library.name} on ${name}, ${isolation}`,
          count,
          async disturb(id) {
            await store.forget(id, successOf(id)).catch(() => false);
            if (Math.random() < 0.1) await store.prune({ olderThanMs: 90_001 }).catch(() => 0);
          },
          mayPayAgain: true,
        },
        { store, other: makeStore(library, other.client, dialect), transaction: one.transaction },
      );
      expect(wrong).toEqual([]);
    },
    60_000 + 1_500 * count,
  );
});
