import { execFile } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'tsup';
import type { TestProject } from 'vitest/node';
import { installHosts } from '../../hosts/programs.js';
import { findMariaDb, findMySql, findNewMariaDb } from '../servers/mysql.js';
import { findPacked, pack } from './pack.js';
import { findPgBouncer } from '../servers/pgbouncer.js';
import { findPsql } from '../servers/postgres-programs.js';
import { findBinary } from '../servers/redis.js';
import { removeAbandonedFolders } from '../servers/server.js';
import { installSqlPackages } from './install.js';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The file of the command line, built for this run. */
    cli: string;
    /** The same of the sandbox. */
    sandboxCli: string;
  }
}

/** Another run at the same time has another folder. */
const buildFolder = fileURLToPath(new URL(`../../../.test/${process.pid}`, import.meta.url));
const cliFolder = join(buildFolder, 'cli');
/** Within its package, which `--version` finds by its name. */
const sandboxFolder = fileURLToPath(new URL(`../../../sandbox/.test/${process.pid}`, import.meta.url));
const repository = fileURLToPath(new URL('../../..', import.meta.url));

/**
 * Runs once, before the first test, and provides what the test files of this run need. A test file names what it needs
 * by importing it, even if only a type. Returns what runs after the last test.
 */
export default async function prepareRun(project: TestProject): Promise<() => void> {
  const paths = project.vitest.state.getPaths();
  const files = paths.map((path) => readFileSync(path, 'utf8'));
  const need = (server: string): boolean => files.some((file) => file.includes(`/support/servers/${server}`));
  const needSql = paths.some((path) => path.includes('/test/sql/'));
  if (need('redis')) await demand(findBinary);
  if (need('mysql') || needSql) await demand(findMariaDb);
  if (need('pgbouncer')) await demand(findPgBouncer);
  if (need('postgres-programs')) await demand(findPsql);
  if (needSql) await demand(findNewMariaDb, findMySql, installSqlPackages);
  await removeAbandonedFolders();
  if (paths.some((path) => path.includes('/test/console/'))) {
    // A run without a browser does not load its driver. If each test file unpacked it, all but one would do so for nothing.
    const { findBrowsers } = await import('./browser.js');
    // If it cannot be unpacked, the tests that need it fail with the reason.
    await findBrowsers().catch(() => undefined);
  }
  const usesCli = paths.some((path) => path.includes('/test/cli/'));
  if (usesCli || files.some((file) => file.includes('/cli/support.js'))) {
    await buildCli();
    project.provide('cli', join(cliFolder, 'cli.js'));
    project.provide('sandboxCli', join(sandboxFolder, 'cli.js'));
    project.onTestsRerun(buildCli);
  }
  if (paths.some((path) => /\/test\/(hosts|package)/.test(path))) {
    // `.ci/run` has packed them already.
    const folder = process.env.PACKED;
    const packed = await (folder === undefined ? pack(join(buildFolder, 'package')) : findPacked(folder));
    project.provide('tarball', packed.tarball);
    project.provide('sandboxTarball', packed.sandboxTarball);
    // Once: two test files that install into one folder at the same time break each other's packages.
    if (paths.some((path) => path.includes('/test/hosts/'))) await demand(() => installHosts(packed.tarball));
  }
  return removeBuilds;
}

/** Builds the command line: a process that compiles it first takes three times as long to start. */
async function buildCli(): Promise<void> {
  try {
    await build({ format: 'esm', dts: false, outDir: cliFolder, silent: true });
    // The config reads the manifest of the folder in which it runs.
    const tsup = join(repository, 'node_modules/tsup/dist/cli-default.js');
    const args = [tsup, '--config', '../tsup.config.ts', '--no-dts', '--out-dir', sandboxFolder, '--silent'];
    await promisify(execFile)(process.execPath, args, { cwd: join(repository, 'sandbox') });
  } catch (error) {
    removeBuilds();
    endRun(error);
  }
}

function removeBuilds(): void {
  for (const folder of [buildFolder, sandboxFolder]) rmSync(folder, { recursive: true, force: true });
}

/** Ends the run with the message alone. If the setup threw, Vitest would also print that it found no test files. */
function endRun(error: unknown): never {
  console.error((error as Error).message);
  process.exit(1);
}

/** Finds or brings what all test files need. Ends the run if it cannot be had. */
async function demand(...searches: readonly (() => Promise<unknown>)[]): Promise<void> {
  try {
    for (const search of searches) await search();
  } catch (error) {
    endRun(error);
  }
}
