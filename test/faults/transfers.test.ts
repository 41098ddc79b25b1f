import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { inspect } from 'node:util';
import { redisStore, transferCallbackReceiver } from 'transfer-callbacks';
import {
  reconcileTransfers,
  transferService,
  type PendingTransfer,
  type TransferService,
} from 'transfer-callbacks/client';
import { transferScenarios } from 'transfer-sandbox';
import { afterAll, expect, test, vi } from 'vitest';
import { forkApp, kill } from '../support/programs/child.js';
import { effectsOn, payerOptions } from '../support/programs/payer.js';
import { freePort } from '../support/servers/port.js';
import { startRedisForFile } from '../support/servers/redis-for-file.js';
import type { TransferServiceOptions } from '../../src/client/service/transfer.js';
import type { SandboxTransfer } from '../../sandbox/src/service/history.js';

// The service, the merchant and the creator of the transfers, in three processes.

const own = startRedisForFile();
const children: ChildProcess[] = [];
const apiSecret = `secret-${randomUUID()}`;
/** What the processes have printed, and what a merchant would log. */
let printed = '';

afterAll(() => Promise.all(children.map(kill)));

/** Starts one of the apps and resolves with its first message. */
async function start(app: string, options: object): Promise<{ child: ChildProcess; said: unknown }> {
  const child = forkApp(`${app}.ts`, options, 'pipe');
  children.push(child);
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
  }
  const ended = once(child, 'exit').then(() => expect.fail(`${app} has ended.`));
  const [said] = (await Promise.race([once(child, 'message'), ended])) as [unknown];
  return { child, said };
}

async function startService(options: object) {
  const { child, said } = await start('sandbox-app', { ...options, apiSecret });
  return {
    client: transferService(said as TransferServiceOptions),
    /** Waits until the service has nothing more to say, and resolves with what it has decided. */
    handled: async (): Promise<SandboxTransfer[]> => {
      child.send('idle');
      const [response] = (await once(child, 'message')) as [SandboxTransfer[]];
      return response;
    },
  };
}

const startPayer = async (run: string, port: number): Promise<ChildProcess> =>
  (await start('payer-app', { redisUrl: own.server.url, run, port })).child;

/** A receiver of this process, for reconciliation, whose handlers write what those of the payer do. */
const makeReceiver = (service: TransferService, run: string) =>
  transferCallbackReceiver({ ...payerOptions, service, store: redisStore(own.redis), ...effectsOn(own.redis, run) });

async function createAll(client: TransferService, externalIds: readonly string[], port: number): Promise<void> {
  const left = [...externalIds];
  const callbackUrl = `http://127.0.0.1:${port}/callbacks`;
  const createSome = async (): Promise<void> => {
    for (let externalId = left.pop(); externalId !== undefined; externalId = left.pop()) {
      await client.createTransfer({ callbackUrl, externalId, amount: 5 });
    }
  };
  await Promise.all(Array.from({ length: 16 }, createSome));
}

const open = (externalIds: readonly string[]): PendingTransfer[] => externalIds.map((id) => ({ id, createdAt: 0 }));

test('of 1 000 transfers of every scenario none is lost and each ends as decided, although the receiver is killed repeatedly', async () => {
  const { client, handled } = await startService({ speed: 100, finalAfterMs: 5_000, seed: 7 });
  const run = randomUUID();
  const port = await freePort();
  let payer = await startPayer(run, port);
  const names = transferScenarios.map(({ name }) => name);
  const externalIds = Array.from({ length: 1_000 }, (_, index) => `${names[index % names.length] ?? ''}-${index}`);

  // In waves, each with a kill in its middle.
  const waves = 5;
  for (let wave = 0; wave < waves; wave += 1) {
    const before = await own.redis.hlen(`effects:${run}`);
    const creating = createAll(client, externalIds.slice(wave * 200, (wave + 1) * 200), port);
    await vi.waitUntil(async () => (await own.redis.hlen(`effects:${run}`)) > before + 50, {
      timeout: 60_000,
      interval: 5,
    });
    await kill(payer);
    payer = await startPayer(run, port);
    await creating;
  }
  const transfers = await handled();
  expect(transfers).toHaveLength(1_000);

  const before = Object.keys(await own.redis.hgetall(`effects:${run}`)).length;
  const receiver = makeReceiver(client, run);
  const report = await reconcileTransfers({ receiver, pending: open(externalIds), concurrency: 8 });
  const effects = await own.redis.hgetall(`effects:${run}`);

  // Of a transfer that failed and succeeded later, the outcome that the merchant got first is final; the other is
  // refused.
  const flipped = transfers.filter(({ scenario }) => scenario === 'flip').map(({ externalId }) => externalId);
  const decided = transfers.filter(({ scenario }) => scenario !== 'flip');
  expect(decided.filter(({ externalId, state }) => effects[externalId] !== state)).toEqual([]);
  expect(flipped.filter((externalId) => !['SUCCESS', 'FAILED'].includes(effects[externalId] ?? ''))).toEqual([]);
  expect(report.problems.filter(({ id }) => !flipped.includes(id))).toEqual([]);
  expect(report.processed).toBeGreaterThan(0);
  printed += inspect(report, { depth: null });
  expect(before).toBeGreaterThan(waves * 50);
}, 600_000);

test('reconciliation that races callbacks in another process never runs a handler twice', async () => {
  const run = randomUUID();
  const { client, handled } = await startService({ speed: 100, finalAfterMs: 1_000, seed: 8 });
  const port = await freePort();
  await startPayer(run, port);
  const externalIds = Array.from({ length: 300 }, (_, index) => `burst-${index}`);
  const receiver = makeReceiver(client, run);
  const creation = { over: false };
  const reconciling = (async () => {
    do {
      await reconcileTransfers({ receiver, pending: open(externalIds), concurrency: 8 });
    } while (!creation.over);
  })();
  await createAll(client, externalIds, port);
  creation.over = true;
  await reconciling;
  await handled();
  const runs = await own.redis.hgetall(`runs:${run}`);
  expect(Object.keys(runs)).toHaveLength(300);
  expect(Object.values(runs).filter((count) => count !== '1')).toEqual([]);
}, 300_000);

test('no process has printed or reported the secret', () => {
  expect(printed).toContain('The receiver ended with conflict:'); // It was filled, then.
  expect(printed).not.toContain(apiSecret);
});
