import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Host } from './host.js';
import { findProgram, withTsx } from './programs.js';
import { workerDates, workerHost } from './worker-host.js';

const here = fileURLToPath(new URL('.', import.meta.url));
const next = (...rest: string[]): string[] => [process.execPath, 'node_modules/next/dist/bin/next', ...rest];

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

const parsedBefore = 'the framework parses JSON first';
const readBefore = 'the framework reads the body first, with its own limit, and accepts every type';

const notRouted = 'the framework has no route for it';

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
