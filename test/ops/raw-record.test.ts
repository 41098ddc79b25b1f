import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { pgStore, redisStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { expect, test } from 'vitest';
import { receiverOf } from '../core/support.js';
import { startPostgresForFile } from '../support/servers/postgres-for-file.js';
import { findCli } from '../support/servers/redis.js';
import { connectForTest, startRedisForTest } from '../support/servers/redis-for-file.js';

const runbook = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');
const [, sql = ''] = /^```sql\n(.*?)^```$/ms.exec(runbook) ?? [];
const [rowSql = '', , claimsSql = ''] = sql.split(/;\n/);
const [, keyCommand = '', holdersCommand = ''] = /^(redis-cli .*)\n(redis-cli .*)\n/m.exec(runbook) ?? [];
const exampleId = '5b2c1f0e-6a53-4f0e-9c55-0d5c8f4b7a11';

const server = startPostgresForFile();

test('the SQL of the runbook finds what is running, and the row of a callback afterwards', async () => {
  const pool = server.pool();
  const store = pgStore(pool);
  await store.migrate();
  const callback = transferSucceeded();
  const { id, externalId } = callback.data;
  const query = async (text: string) =>
    (await pool.query<object>(text.replaceAll(exampleId, id).replaceAll('payout-8841', externalId))).rows;
  const receiver = receiverOf({
    store,
    onSuccess: async (_callback, { tx }) => {
      const { rows } = await tx.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
      expect(await query(claimsSql)).toMatchObject([{ pid: rows[0]?.pid }]);
    },
  });
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
  expect(await query(claimsSql)).toEqual([]);
  expect(await query(rowSql)).toMatchObject([
    { id, external_id: externalId, fingerprint: expect.any(String) as string },
  ]);
});

test('redis-cli shows the record of a callback and the keys that are held, as in the runbook', async () => {
  const redis = await startRedisForTest();
  const cli = await findCli();
  const runInShell = async (command: string): Promise<string> => {
    const line = command.replaceAll('redis-cli', `'${cli}' -p ${redis.port}`);
    return (await promisify(execFile)('sh', ['-c', line])).stdout;
  };
  const [before, held] = [transferSucceeded(), transferSucceeded()];
  const whileHeld: string[] = [];
  const receiver = receiverOf({
    store: redisStore(connectForTest(redis.port)),
    onSuccess: async ({ data }, { delivery }) => {
      if (data.id !== held.data.id) return;
      whileHeld.push(await runInShell(holdersCommand), `transfer-callbacks:${data.id} claimed ${delivery}\n`);
    },
  });
  for (const callback of [before, held]) {
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
  }
  const [printed, holder] = whileHeld;
  expect(printed).toBe(holder);
  expect(await runInShell(keyCommand.replace(exampleId, before.data.id))).toMatch(
    new RegExp(`^handled \\S+ \\S*${before.data.externalId}`),
  );
});
