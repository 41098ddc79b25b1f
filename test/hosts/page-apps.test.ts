// The files of examples for Next.js and for AWS Lambda, built and run with the tarball.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { build } from 'esbuild';
import { pgStore } from 'transfer-callbacks';
import { transferService } from 'transfer-callbacks/client';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { transferSandbox } from 'transfer-sandbox';
import { afterAll, beforeAll, expect, inject, onTestFinished, test, vi } from 'vitest';
import { install, installed, makeWorkshop, packageName, repository, run, stepMs } from '../package/support.js';
import { kill, tied } from '../support/programs/child.js';
import { post } from '../support/helpers/post.js';
import { freePort, isListening } from '../support/servers/port.js';
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js';
import { findVersion } from './programs.js';
import { quiet } from './start.js';

const examples = join(repository, 'examples');
const secret = 'the-secret-of-the-tests-of-the-page';

let workshop: string;
let postgres: PostgresServer;
let environment: Record<string, string>;

const at = (...path: string[]): string => join(workshop, ...path);

beforeAll(async () => {
  workshop = await makeWorkshop();
  postgres = await startPostgres();
  environment = { DATABASE_URL: postgres.url, CALLBACK_SECRET: secret };
  await postgres.pool().query(`
    CREATE TABLE ledger (payout text, entry text);
    CREATE TABLE payouts (id text PRIMARY KEY, created_at timestamptz, paid_at timestamptz, failed_at timestamptz)`);
  const hosts = ['next', 'react', 'react-dom', 'typescript', '@types/react'];
  const own = ['zod', 'pg', '@types/pg', 'prom-client', '@types/node'];
  const versions = [
    ...hosts.map((name) => [name, findVersion(`node_modules/${name}`)]),
    ...(await Promise.all(own.map(async (name) => [name, await installed(name)]))),
  ];
  const dependencies = { ...(Object.fromEntries(versions) as object), [packageName]: `file:${inject('tarball')}` };
  await install(workshop, { dependencies });
}, stepMs);

afterAll(async () => {
  await postgres.stop();
  await rm(workshop, { recursive: true, force: true });
});

const metricsRoute = `
  import { register } from 'prom-client';
  export const dynamic = 'force-dynamic';
  export const GET = async () => new Response(await register.metrics());`;

test(
  'five files are an app of Next.js that books once, has one registry of metrics, and ends after its late handlers',
  async () => {
    await cp(join(examples, 'hosts', 'nextjs'), workshop, { recursive: true });
    await mkdir(at('app', 'metrics'));
    await writeFile(at('app', 'metrics', 'route.ts'), metricsRoute);
    const next = at('node_modules', 'next', 'dist', 'bin', 'next');
    await run(process.execPath, [next, 'build'], workshop, { ...environment, ...quiet, NODE_ENV: 'production' });

    const port = await freePort();
    const args = [next, 'start', '--hostname', '127.0.0.1', '--port', String(port)];
    const env = { ...process.env, ...quiet, ...environment, NODE_OPTIONS: '', NODE_ENV: 'production' as const };
    const app = tied(spawn(process.execPath, args, { cwd: workshop, env, stdio: 'ignore' }));
    onTestFinished(() => kill(app));
    await vi.waitUntil(() => isListening(port), { timeout: stepMs / 4 });

    const url = `http://127.0.0.1:${port}/callbacks/transfers`;
    const callback = transferSucceeded({ externalId: 'payout-1' });
    const replies = await Promise.all(Array.from({ length: 5 }, () => post(`${url}/${secret}`, callback)));
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect((await post(`${url}/a-guess`, transferSucceeded())).status).toBe(401);
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    for (const [outcome, count] of Object.entries({ processed: 1, duplicate: 4, unauthorized: 1 })) {
      expect(metrics).toMatch(
        new RegExp(`^transfer_callbacks_deliveries_total\\{outcome="${outcome}".* ${count}$`, 'm'),
      );
    }

    const pool = postgres.pool();
    const locker = await pool.connect();
    await locker.query('BEGIN; LOCK TABLE ledger');
    const late = await post(`${url}/${secret}`, transferSucceeded({ externalId: 'payout-2' }));
    expect(late.status).toBe(503); // after `handlerTimeoutMs`: its handler goes on
    app.kill('SIGTERM');
    const ended = once(app, 'exit');
    await vi.waitUntil(async () => !(await isListening(port)), { timeout: stepMs / 4 });
    await locker.query('COMMIT');
    locker.release();
    await ended;
    const { rows } = await pool.query('SELECT payout, entry FROM ledger ORDER BY payout');
    expect(rows).toEqual([
      { payout: 'payout-1', entry: 'SUCCESS' },
      { payout: 'payout-2', entry: 'SUCCESS' },
    ]);
  },
  stepMs,
);

interface Functions {
  receive: (event: object) => Promise<{ statusCode: number; body: string }>;
  reconcile: () => Promise<void>;
}

/** Bundles the two functions as AWS would run them. */
async function loadFunctions(): Promise<Functions> {
  const folder = at('lambda');
  await cp(join(examples, 'lambda'), folder, { recursive: true });
  await build({
    entryPoints: ['receive', 'reconcile'].map((name) => join(folder, `${name}.ts`)),
    outdir: folder,
    outExtension: { '.js': '.cjs' },
    ...{ bundle: true, format: 'cjs', platform: 'node', target: 'node20', external: ['pg-native'], logLevel: 'error' },
  });
  const load = createRequire(import.meta.url);
  const [receive, reconcile] = ['receive', 'reconcile'].map(
    (name) => (load(join(folder, `${name}.cjs`)) as { handler: never }).handler,
  );
  return { receive, reconcile } as unknown as Functions;
}

test(
  'the functions of Lambda book a callback once, reconcile what got none, and fail where the service knows no transfer',
  async () => {
    const service = await transferSandbox({ speed: 1_000, finalAfterMs: 1_000 });
    onTestFinished(() => service.close());
    const { apiKey, apiSecret } = service.keys.valid;
    const all = {
      ...environment,
      ...{ SERVICE_URL: service.baseUrl, TRANSFER_API_KEY: apiKey, TRANSFER_API_SECRET: apiSecret },
    };
    for (const [name, value] of Object.entries(all)) vi.stubEnv(name, value);
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    await pgStore(postgres.pool()).migrate();
    const { receive, reconcile } = await loadFunctions();
    const callbackUrl = 'http://127.0.0.1:9/callbacks';
    const client = transferService({ baseUrl: service.baseUrl, apiKey, apiSecret });
    const hourAgo = "INSERT INTO payouts (id, created_at) VALUES ($1, now() - interval '1 hour')";
    for (const id of ['payout-1', 'no-callback-1']) await postgres.pool().query(hourAgo, [id]);
    await expect(reconcile()).rejects.toThrow('has advice'); // the service knows none of them
    await client.createTransfer({ callbackUrl, externalId: 'no-callback-1', amount: 15_000 });

    const send = async (token: string): Promise<number> => {
      const { statusCode } = await receive({
        rawPath: `/callbacks/transfers/${token}`,
        headers: { 'content-type': 'application/json' },
        body: Buffer.from(JSON.stringify(callback)).toString('base64'),
        isBase64Encoded: true,
        requestContext: { domainName: 'function.example', http: { method: 'POST', sourceIp: '127.0.0.1' } },
      });
      return statusCode;
    };
    const callback = transferSucceeded({ externalId: 'payout-1' });
    expect(await send('a-guess')).toBe(401);
    expect(await send(secret)).toBe(200);
    expect(await send(secret)).toBe(200);

    const print = vi.spyOn(console, 'log').mockReturnValue();
    onTestFinished(() => {
      print.mockRestore();
    });
    const open = 'SELECT id FROM payouts WHERE paid_at IS NULL';
    await vi.waitUntil(
      async () => {
        await reconcile();
        return (await postgres.pool().query(open)).rowCount === 0;
      },
      { timeout: stepMs / 4 },
    );
    expect(JSON.parse(String(print.mock.calls.at(-1)?.[0]))).toMatchObject({ processed: 1, failed: 0 });
  },
  stepMs,
);
