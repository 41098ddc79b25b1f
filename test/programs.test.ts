import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { quickTests } from '../vitest.config.js';
import { kill, tied } from './support/programs/child.js';
import { findOnPath } from './support/servers/programs.js';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Starts Vitest with an empty PATH. On a busy machine that takes a while. */
const timeout = 180_000;

interface Run {
  readonly exitCode: number;
  readonly printed: string;
  readonly complained: string;
}

/** Runs test files on a machine with an empty PATH and no program unpacked, unless `env` says otherwise. */
async function runTests(files: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Run> {
  const child = tied(
    spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...files], {
      cwd: root,
      env: { PATH: '', TEST_PROGRAMS: await makeFolder(), NO_COLOR: '1', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
  );
  onTestFinished(() => kill(child));
  const [printed, complained, [exitCode]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number]>,
  ]);
  return { exitCode, printed, complained };
}

/** Creates a folder for this test. */
async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'transfer-callbacks-no-redis-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Resolves with a folder of links to everything on the PATH but a Redis. */
async function hideRedis(): Promise<string> {
  const folder = await makeFolder();
  for (const directory of (process.env.PATH ?? '').split(delimiter)) {
    for (const name of await readdir(directory).catch(() => [])) {
      if (/^(redis|valkey)-/.test(name) || existsSync(join(folder, name))) continue;
      await symlink(join(directory, name), join(folder, name)).catch(() => undefined); // A broken link of this name.
    }
  }
  return folder;
}

const onDebian = (await findOnPath('apt-get')) !== undefined && (await findOnPath('dpkg-deb')) !== undefined;
const needsRedis = ['test/stores/redis-keys.test.ts'];

test(
  'a run that needs a Redis ends with one sentence before its first test if there is none',
  { timeout },
  async () => {
    const { exitCode, printed, complained } = await runTests([...needsRedis, 'test/stores/memory.test.ts']);
    expect(exitCode).toBe(1);
    const sentence =
      'The tests need a redis-server or valkey-server on the PATH or in REDIS_SERVER_BIN, and this machine has none: ' +
      '`apt install redis-server` on Debian, `brew install redis` on macOS, `apk add redis` on Alpine; ' +
      'on Windows run them in WSL.\n';
    expect(complained.split(sentence)).toHaveLength(2);
    expect(complained).not.toContain('    at ');
    expect(printed).not.toMatch(/Test Files|✓|TypeError/);
  },
);

const there = process.execPath;

test.each([
  ['mariadbd', 'test/servers.test.ts', {}, 'a mariadbd on the PATH or in MARIADBD_BIN'],
  ['pgbouncer', 'test/servers.test.ts', { MARIADBD_BIN: there }, 'a pgbouncer on the PATH or in PGBOUNCER_BIN'],
  [
    'mysqld',
    'test/sql/stores.test.ts',
    { MARIADBD_BIN: there, NEW_MARIADBD_BIN: there },
    'a mysqld of MySQL 9 on the PATH or in MYSQLD_BIN',
  ],
])('a run that needs a %s ends with how to get one', { timeout }, async (_name, path, env, what) => {
  const { exitCode, printed, complained } = await runTests([path], { TESTS: 'weekly', ...env });
  expect(exitCode).toBe(1);
  expect(complained).toMatch(new RegExp(`^The tests need ${what}, and this machine has none: .+\\.\n$`));
  expect(printed).not.toMatch(/Test Files|✓/);
});

test.runIf(onDebian)(
  'without a Redis on the PATH, runs unpack the one of Debian and keep it',
  { timeout },
  async () => {
    const env = { PATH: await hideRedis(), TEST_PROGRAMS: await makeFolder() };
    const unpacking = "No redis-server here: unpacking Debian's (6 MB, and the lists of packages), once.\n";
    const together = await Promise.all([runTests(needsRedis, env), runTests(needsRedis, env)]);
    // A machine without a network has nothing to unpack.
    if (together.some(({ complained }) => complained.includes('cannot be unpacked (Failed to fetch'))) return;
    const later = await runTests(needsRedis, { ...env, PATH: '' });
    expect(together.map(({ complained }) => complained)).toEqual([unpacking, unpacking]);
    expect(later.complained).toBe('');
    for (const { exitCode, printed } of [...together, later]) {
      expect(printed).toMatch(/Test Files +1 passed/);
      expect(exitCode).toBe(0);
    }
    expect(await readdir(env.TEST_PROGRAMS)).toEqual(['redis-server']);
    const { stdout } = await promisify(execFile)(join(env.TEST_PROGRAMS, 'redis-server', 'redis-cli'), ['--version']);
    expect(stdout).toMatch(/^redis-cli \d/);
  },
);

test.runIf(onDebian)(
  'a mirror of packages that does not respond ends the run with one sentence',
  { timeout },
  async () => {
    const folder = await makeFolder();
    await mkdir(join(folder, 'none'));
    await writeFile(join(folder, 'sources.list'), 'deb [trusted=yes] http://127.0.0.1:9/debian stable main\n');
    await writeFile(
      join(folder, 'apt.conf'),
      `Dir::Etc::sourcelist "${folder}/sources.list";\nDir::Etc::sourceparts "${folder}/none";\n`,
    );
    const env = {
      PATH: await hideRedis(),
      TEST_PROGRAMS: join(folder, 'programs'),
      APT_CONFIG: join(folder, 'apt.conf'),
    };
    const { exitCode, complained } = await runTests(needsRedis, env);
    expect(complained).toMatch(
      new RegExp(
        "^No redis-server here: .*\nNo redis-server is on the PATH, and Debian's cannot be unpacked \\(Failed to fetch http://127.0.0.1:9/.+\\): " +
          'install redis-server, or try again when the mirror of packages responds to `apt-get update`\\.\n$',
      ),
    );
    expect(exitCode).toBe(1);
    expect(await readdir(env.TEST_PROGRAMS)).toEqual([]);
  },
);

test('a run that needs no Redis does without', { timeout }, async () => {
  const { exitCode, printed } = await runTests(['test/lib/deadline.test.ts']);
  expect(printed).toMatch(/Test Files +\d passed/);
  expect(exitCode).toBe(0);
});

test('the files of test:quick start no Redis, no PostgreSQL and no browser', async () => {
  const servers = /support\/(?:servers\/(?!http-servers|serve\b)|helpers\/browser)/;
  for (const path of quickTests) {
    const names = path.endsWith('.ts') ? [''] : await readdir(join(root, path), { recursive: true });
    for (const name of names.filter((each) => each === '' || each.endsWith('.ts'))) {
      const text = await readFile(join(root, path, name), 'utf8');
      expect([path, name, servers.exec(text)?.[0]]).toEqual([path, name, undefined]);
    }
  }
});
