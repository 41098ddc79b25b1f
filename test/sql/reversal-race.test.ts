// With RACE_TRANSFERS=400 and `--reporter=default` the counts of each race are printed.
import { afterEach, expect, test } from 'vitest';
import { post } from '../support/helpers/post.js';
import { race, successOf, transfersOr } from '../support/helpers/reversal-race.js';
import { announced } from '../support/helpers/reversing.js';
import { forkApp } from '../support/programs/child.js';
import { startTwoApps } from '../support/programs/two-apps.js';
import type { AppOptions } from './app.js';
import { databases, type Started } from './databases.js';
import { makeStore } from './factories.js';
import { findLibrary } from './libraries.js';

let server: Started | undefined;
afterEach(() => server?.stop());

const count = transfersOr(100);

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
    const library = findLibrary(name);
    const { url } = (server = await start());
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
      count,
      async deliver(to, status, id) {
        const response = await post(urls[to], announced(status, id)).catch(() => undefined);
        return response?.status === 200 || response?.status === 422;
      },
      disturb: what === 'end' ? (id) => store.forget(id, successOf(id)).catch(() => false) : undefined,
      countBookings: (status, id) => transaction.count(`${status} ${id}`),
      mayPayAgain: what === 'end',
    });
    isOver = true;
    expect(await killing).toBeGreaterThan(0);
    await close();
    expect(wrong).toEqual([]);
  },
  120_000 + 2_000 * count,
);
