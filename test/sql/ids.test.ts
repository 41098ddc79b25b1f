import { Client } from 'pg';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { expect, test } from 'vitest';
import { receiverOf } from '../core/support.js';
import { databases } from './databases.js';
import { describeDatabases, librariesOn } from './libraries.js';
import { makeStore } from './factories.js';

/**
 * What settings, collations, charsets, placeholders and comments may change, and what two ids may have in common. The
 * receiver refuses the rest.
 */
const awkward = [
  ...['A1', 'a1', 'é', 'e', 'e\u0301', 'ß', 'ss', 'x', 'x ', ' x', "q'uote", 'q"uote', 'q`uote', 'back\\slash'],
  ...["\\'; DROP TABLE written; --", '$1', '?', '??', ':name', ':1', '${a}', '%', '_', '縗', '\u8868\u5341', '\uff02'],
  ...['😀', '😀😀', 'İ', 'i', 'I', 'ı', '-', '--', '/*', '*/', '/*!50000 x*/', ';', ';COMMIT', "');COMMIT;--"],
  ...['ﬀ', 'ff', '１', '1', '\u03a9', '\u2126', '["a","b"]', 'a'.repeat(230), '😀'.repeat(60), '__proto__'],
  ...['constructor'],
];

describeDatabases(databases, ({ dialect }, server) => {
  for (const { name, prepare } of librariesOn(dialect, server)) {
    test(`with ${name} each id is the id of one callback, whatever characters it has`, async ({ onTestFinished }) => {
      const { store } = await prepare(onTestFinished, 4);
      const handled: string[] = [];
      const receiver = receiverOf({
        store,
        onSuccess: ({ data }) => void handled.push(data.id),
      });
      const ids = awkward.map((id) => `${id}${name}`);
      const outcomes: string[][] = [];
      for (const id of ids) {
        const callback = transferSucceeded({ id, externalId: `for ${id}` });
        const other = transferSucceeded({ id, externalId: `for another ${id}` });
        const each: string[] = [];
        for (const given of [callback, callback, other]) each.push((await receiver.receive(given)).outcome);
        outcomes.push([id, ...each]);
      }
      expect(outcomes).toEqual(ids.map((id) => [id, 'processed', 'duplicate', 'conflict']));
      expect(handled).toEqual(ids);
    });
  }
});

test.each(databases.filter(({ dialect }) => dialect === 'postgres'))(
  'on $name no id is a duplicate of another one in a column that ignores case',
  async ({ start }) => {
    const server = await start();
    const admin = new Client(server.url);
    await admin.connect();
    await admin.query("CREATE COLLATION ignoring (provider = icu, locale = 'und-u-ks-level2', deterministic = false)");
    const outcomes: string[][] = [];
    for (const { name, open } of librariesOn('postgres', server)) {
      const opened = await open(server.url, 4);
      const table = `ignoring_${outcomes.length}`;
      const store = makeStore({ name }, opened.client, 'postgres', { table });
      await store.migrate();
      await admin.query(`ALTER TABLE ${table} ALTER id TYPE text COLLATE ignoring`);
      const receiver = receiverOf({ store, inFlightWaitMs: 0 });
      const [small, large] = [transferSucceeded({ id: 'payout a' }), transferSucceeded({ id: 'payout A' })];
      const received: string[] = [];
      for (const callback of [small, large, small]) received.push((await receiver.receive(callback)).outcome);
      outcomes.push(received);
      await receiver.close();
      await opened.close();
    }
    await admin.end();
    await server.stop();
    expect(outcomes.length).toBeGreaterThan(5);
    // The key of the table refuses the second id: nothing is acknowledged, and no handler has run.
    expect(outcomes).toEqual(outcomes.map(() => ['processed', 'in_progress', 'duplicate']));
  },
);
