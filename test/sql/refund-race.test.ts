// With RACE_TRANSFERS=400 and `--reporter=default` the counts of each race are printed.
import { Pool } from 'pg';
import { createConnection } from 'mysql2/promise';
import { expect, onTestFinished, test } from 'vitest';
import { raceInProcess, successOf, transfersOr } from '../support/helpers/reversal-race.js';
import { databases } from './databases.js';
import { describeDatabases } from './describe-databases.js';
import { librariesOn } from './libraries.js';

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
            await store.forget(id, successOf(id)).catch(() => false);
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
