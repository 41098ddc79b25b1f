import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pgStore } from 'transfer-callbacks';
import { startPostgres } from '../support/servers/postgres.js';
import { findProgram, findVersion, hostsFolder, withTsx } from './programs.js';

/** A host of examples/hosts, started as its users start it. */
export interface Host {
  readonly name: string;
  /** The file in examples/hosts that a reader copies. */
  readonly file: string;
  /** The package whose version the page shows: the key in the `packages` of package-lock.json. */
  readonly versionOf?: string;
  /** Starts what the host needs beside it, with the variables that tell where it is. */
  readonly startServers?: () => Promise<{ readonly env: NodeJS.ProcessEnv; stop(): Promise<void> }>;
  /** What runs before the host starts. */
  readonly build?: () => readonly string[];
  /** The program and its arguments. It serves on the port of the variable PORT. */
  readonly command: (port: number) => readonly string[];
  /** Why a response differs from that of the listener, by the name of the case. */
  readonly differs?: Readonly<Record<string, string>>;
}

const here = fileURLToPath(new URL('.', import.meta.url));
const next = (...rest: string[]): string[] => [process.execPath, 'node_modules/next/dist/bin/next', ...rest];

const { arch, platform } = process;
export const bun = (): string => findProgram(`@oven/bun-${platform}-${arch === 'arm64' ? 'aarch64' : arch}/bin/bun`);
export const deno = (): string => findProgram(`@deno/${platform}-${arch}${platform === 'linux' ? '-glibc' : ''}/deno`);
const workerd = (): string =>
  findProgram(`@cloudflare/workerd-${platform}-${arch === 'x64' ? '64' : arch}/bin/workerd`);

const versionOfWorkerd = 'node_modules/@cloudflare/workerd-linux-64';

/** The oldest date at which a Worker with the package starts, and that of this workerd. */
export const workerDates = [
  '2025-09-15',
  findVersion(versionOfWorkerd).replace(/^1\.(\d{4})(\d\d)(\d\d)\..*$/, '$1-$2-$3'),
] as const;

/** Makes the host of a Worker, which is in this file, as Cloudflare runs it at a `compatibility_date`. */
export function workerHost(file: string, date: string): Host {
  const bundle = join(hostsFolder, 'node_modules/.workers', `${basename(file, '.ts')}-${date}.mjs`);
  return {
    name: 'Cloudflare Workers in workerd',
    file,
    versionOf: versionOfWorkerd,
    startServers: startDatabase,
    build: () => withTsx(join(here, 'build-worker.ts'), file, bundle, date),
    command: (port) => [workerd(), 'serve', `${bundle}.capnp`, '--socket-addr', `http=127.0.0.1:${port}`],
  };
}

/** Starts a PostgreSQL whose table is there, and refuses one id as a store that is down. */
async function startDatabase() {
  const server = await startPostgres();
  const pool = server.pool();
  await pgStore(pool).migrate();
  await pool.query("ALTER TABLE transfer_callbacks ADD CHECK (id <> 'store-down')");
  return { env: { DATABASE_URL: server.url }, stop: () => server.stop() };
}

const parsedBefore = 'the framework parses JSON first';
const readBefore = 'the framework reads the body first, with its own limit, and accepts every type';

const notRouted = 'the framework has no route for it';

/** Makes the host of a file that Node runs, with the package whose version the page shows. */
const onNode = (name: string, file: string, versionOf: string, ...args: string[]): Host => ({
  ...{ name, file, versionOf },
  command: () => withTsx(...args, file),
});

/** The first one is the listener, to which the others are compared. */
export const hosts: readonly Host[] = [
  { name: 'node:http', file: 'node-http.ts', command: () => withTsx('node-http.ts') },
  { ...onNode('Express 5', 'express.ts', 'node_modules/express'), differs: { PUT: notRouted } },
  {
    ...onNode('Express 4', 'express.ts', 'node_modules/express4', '--import', join(here, 'express4.mjs')),
    differs: { PUT: notRouted },
  },
  onNode('NestJS', 'nestjs.ts', 'node_modules/@nestjs/core'),
  onNode('Fastify', 'fastify.ts', 'node_modules/fastify'),
  onNode('Koa', 'koa.ts', 'node_modules/koa'),
  onNode('Hono on Node', 'hono.ts', 'node_modules/hono'),
  {
    name: 'Next.js',
    file: 'next/app/callbacks/transfers/route.ts',
    versionOf: 'node_modules/next',
    build: () => next('build', 'next'),
    command: (port) => next('start', 'next', '--hostname', '127.0.0.1', '--port', String(port)),
    differs: { PUT: notRouted },
  },
  {
    name: 'Bun',
    file: 'bun.ts',
    versionOf: 'node_modules/@oven/bun-linux-x64',
    command: () => [bun(), 'run', 'bun.ts'],
  },
  {
    name: 'Deno',
    file: 'deno.ts',
    versionOf: 'node_modules/@deno/linux-x64-glibc',
    command: () => [deno(), 'run', '--allow-net', '--allow-env', '--allow-sys=hostname', 'deno.ts'],
  },
  {
    name: 'AWS Lambda',
    file: 'aws-lambda.ts',
    command: () => withTsx(join(here, 'lambda-front.ts'), 'aws-lambda.ts'),
  },
  workerHost('cloudflare-workers.ts', workerDates[0]),
  {
    name: 'Google Cloud Functions',
    file: 'google-cloud-functions.ts',
    versionOf: 'node_modules/@google-cloud/functions-framework',
    command: () =>
      withTsx(
        'node_modules/@google-cloud/functions-framework/build/src/main.js',
        '--target=transferCallbacks',
        '--source=google-cloud-functions.ts',
      ),
    differs: {
      'not JSON': parsedBefore,
      'too long': readBefore,
      'too long, in chunks': readBefore,
      'plain text': readBefore,
    },
  },
];
