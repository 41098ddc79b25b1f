import { Pool } from 'pg';
import { pgStore } from 'transfer-callbacks';
import { beforeAll, expect, test } from 'vitest';
import { isolations, windowCases } from '../support/helpers/refund-window-cases.js';
import { makeGate } from '../support/helpers/refund-window.js';
import { databases, type Started } from './databases.js';
import { makeStore } from './factories.js';
import { libraries } from './libraries.js';

let server: Started;
let admin: Pool;
beforeAll(async () => {
  const found = databases.find(({ name }) => name === 'PostgreSQL 18') ?? expect.fail();
  server = await found.start();
  admin = new Pool({ connectionString: server.url, max: 10, options: '-c search_path=public' });
  await pgStore(admin).migrate();
  await makeGate(admin);
  return async () => {
    await admin.end();
    await server.stop();
  };
}, 60_000);

const all = libraries.flatMap((library) => {
  const open = library.open.postgres;
  return open === undefined ? [] : isolations.map((isolation) => [library.name, isolation, { library, open }] as const);
});

test.each(all)(
  'with %s and %s nothing is refunded twice, and nothing lost, whatever commits between the snapshot of a claim and its locks',
  async (_name, isolation, { library, open }) => {
    await admin.query(`ALTER ROLE postgres SET search_path = gated, pg_catalog, public`);
    await admin.query(`ALTER ROLE postgres SET default_transaction_isolation = '${isolation}'`);
    const { client, close } = await open(server.url, 2);
    try {
      const store = makeStore(library, client, 'postgres');
      for (const run of windowCases) await run(store, pgStore(admin), admin);
    } finally {
      await close();
    }
  },
  120_000,
);
