import { Pool } from 'pg';
import { pgStore } from 'transfer-callbacks';
import { beforeAll, onTestFinished, test } from 'vitest';
import { isolations, makeGate, windowCases } from '../support/helpers/refund-window.js';
import { databases } from './databases.js';
import { describeDatabases } from './describe-databases.js';
import { librariesOn } from './libraries.js';

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
