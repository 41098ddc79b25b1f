import { execFile, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { forkApp, removeTemporary } from './support/programs/child.js';
import { startMariaDb } from './support/servers/mysql.js';
import { startPgBouncer } from './support/servers/pgbouncer.js';
import { isListening } from './support/servers/port.js';
import { findPrograms, majors } from './support/servers/postgres-programs.js';
import { startPostgres } from './support/servers/postgres.js';
import { makeFolder, removeAbandonedFolders } from './support/servers/server.js';

const run = promisify(execFile);

describe.each(majors)('PostgreSQL %i', (major) => {
  test('starts out of a folder that only root may enter, although npm has not run its install script', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'transfer-callbacks-programs-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const programs = join(folder, 'native');
    await run('cp', ['-R', findPrograms(major), programs]);
    const list = await readFile(join(programs, 'pg-symlinks.json'), 'utf8');
    for (const { target } of JSON.parse(list) as { target: string }[]) await rm(join(folder, target), { force: true });
    await expect(run(join(programs, 'bin/postgres'), ['--version'])).rejects.toThrow('postgres');

    const servers = await Promise.all([startPostgres(major, programs), startPostgres(major, programs)]);
    for (const server of servers) {
      const { rows } = await server.pool().query<{ version: string }>('SELECT version()');
      await server.stop();
      expect(rows[0]?.version).toContain(`PostgreSQL ${major}.`);
    }
  });
});

test('a MariaDB that starts leaves the temporary tables of another one alone', async () => {
  const table = join(tmpdir(), `#sql-temptable-${process.pid}-1-1.MAI`);
  await writeFile(table, '');
  onTestFinished(() => rm(table, { force: true }));
  const server = await startMariaDb();
  await server.stop();
  await expect(access(table)).resolves.toBeUndefined();
});

test('PgBouncer lends each transaction a connection of its own, and each connection to several clients', async () => {
  const postgres = await startPostgres();
  const bouncer = await startPgBouncer(postgres, { connections: 2 });
  const pool = postgres.pool({ connectionString: bouncer.url });
  const begin = async () => {
    const client = await pool.connect();
    await client.query('BEGIN');
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    const commit = async (): Promise<void> => {
      await client.query('COMMIT');
      client.release();
    };
    return { pid: rows[0]?.pid, commit };
  };
  const [first, second] = await Promise.all([begin(), begin()]);
  expect(first.pid).not.toBe(second.pid);
  const waiting = begin();
  await first.commit();
  const third = await waiting;
  expect(third.pid).toBe(first.pid);
  await Promise.all([second.commit(), third.commit()]);
  await bouncer.stop();
  await postgres.stop();
});

const ends = {
  'is ended': (child: ChildProcess) => child.kill('SIGTERM'),
  'outlives the run': (child: ChildProcess) => {
    child.disconnect();
  },
};

test.each(Object.entries(ends))('a test process that %s ends its server and removes the folder', async (_how, end) => {
  const child = forkApp('server-app.ts', {});
  const [port] = (await once(child, 'message')) as [number];
  const findFolders = async () => (await readdir(tmpdir())).filter((name) => name.includes(`-${child.pid}-`));
  expect(await findFolders()).toHaveLength(1);
  end(child);
  await vi.waitFor(async () => {
    expect(await findFolders()).toEqual([]);
  });
  await vi.waitFor(() => expect(isListening(port)).resolves.toBe(false));
});

test('a run removes the folders that killed test processes have left, and no others', async () => {
  const { pid } = spawnSync(process.execPath, ['--version']);
  const own = await makeFolder();
  const abandoned = own.replace(`-${process.pid}-`, `-${pid}-`);
  await mkdir(abandoned);
  await removeAbandonedFolders();
  await expect(access(abandoned)).rejects.toThrow('ENOENT');
  await access(own);
  await removeTemporary(own);
});
