import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of the examples, which has packages of its own. */
export const hostsFolder = fileURLToPath(new URL('../../examples/hosts', import.meta.url));

/** A host of examples/hosts, started as its users start it. */
export interface Host {
  readonly name: string;
  /** The file in examples/hosts that a reader copies. */
  readonly file: string;
  /** The package whose version the page shows: the key in the `packages` of package-lock.json. */
  readonly versionOf?: string;
  /** What runs before the host starts. */
  readonly build?: () => readonly string[];
  /** The program and its arguments. It serves on the port of the variable PORT. */
  readonly command: (port: number) => readonly string[];
  /** Why a response differs from that of the listener, by the name of the case. */
  readonly differs?: Readonly<Record<string, string>>;
}

const here = fileURLToPath(new URL('.', import.meta.url));
const withTsx = (...rest: string[]): string[] => [process.execPath, '--import', 'tsx', ...rest];
const next = (...rest: string[]): string[] => [process.execPath, 'node_modules/next/dist/bin/next', ...rest];

/** Returns the path of a program that comes in a package for this platform. */
function findProgram(name: string, paths: Readonly<Record<string, string>>): string {
  const path = paths[`${process.platform}-${process.arch}`];
  if (path !== undefined && existsSync(join(hostsFolder, path))) return path;
  throw new Error(`The packages of examples/hosts have no ${name} for ${process.platform} on ${process.arch}.`);
}

export const bun = (): string =>
  findProgram('Bun', {
    'darwin-arm64': 'node_modules/@oven/bun-darwin-aarch64/bin/bun',
    'darwin-x64': 'node_modules/@oven/bun-darwin-x64/bin/bun',
    'linux-arm64': 'node_modules/@oven/bun-linux-aarch64/bin/bun',
    'linux-x64': 'node_modules/@oven/bun-linux-x64/bin/bun',
  });
export const deno = (): string =>
  findProgram('Deno', {
    'darwin-arm64': 'node_modules/@deno/darwin-arm64/deno',
    'darwin-x64': 'node_modules/@deno/darwin-x64/deno',
    'linux-arm64': 'node_modules/@deno/linux-arm64-glibc/deno',
    'linux-x64': 'node_modules/@deno/linux-x64-glibc/deno',
  });

const parsedBefore = 'the framework parses JSON before it calls the function, and refuses the rest itself';
const readBefore =
  'the framework reads the body before it calls the function, with a limit of its own, and accepts every type';

const notRouted = 'the framework itself refuses the methods for which it has no route';

/** The first one is the listener, to which the others are compared. */
export const hosts: readonly Host[] = [
  { name: 'node:http', file: 'node-http.ts', command: () => withTsx('node-http.ts') },
  {
    name: 'Express 5',
    file: 'express.ts',
    versionOf: 'node_modules/express',
    command: () => withTsx('express.ts'),
    differs: { PUT: notRouted },
  },
  {
    name: 'Express 4',
    file: 'express.ts',
    versionOf: 'node_modules/express4',
    command: () => withTsx('--import', join(here, 'express4.mjs'), 'express.ts'),
    differs: { PUT: notRouted },
  },
  {
    name: 'NestJS',
    file: 'nestjs.ts',
    versionOf: 'node_modules/@nestjs/core',
    command: () => withTsx('nestjs.ts'),
  },
  {
    name: 'Fastify',
    file: 'fastify.ts',
    versionOf: 'node_modules/fastify',
    command: () => withTsx('fastify.ts'),
  },
  { name: 'Koa', file: 'koa.ts', versionOf: 'node_modules/koa', command: () => withTsx('koa.ts') },
  {
    name: 'Hono on Node',
    file: 'hono.ts',
    versionOf: 'node_modules/hono',
    command: () => withTsx('hono.ts'),
  },
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
