import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inspectTransfer } from 'transfer-callbacks/client';
import { startLedger, type Ledger as Database } from '../support/servers/postgres.js';
import { startRedisForFile } from '../support/servers/redis-for-file.js';
import { imitations, standIn } from './imitations.js';
import { memoryLedger, pgLedger, redisLedger, type Ledger } from './ledgers.js';
import { closeAll, handlers, mount } from './mount.js';

const redis = startRedisForFile();
let database: Database;
beforeAll(async () => {
  database = await startLedger({ max: 40 });
  return () => database.server.stop();
});
afterAll(closeAll);
afterAll(standIn.close);

const ledgers: [string, () => Ledger][] = [
  ['memoryStore', memoryLedger],
  ['redisStore', () => redisLedger(redis.redis)],
  ['pgStore', () => pgLedger(database.pool)],
];

// On pgStore a reversal of a success waits for two seconds, so these tests run at the same time.
const reversing = imitations.filter(({ reverses }) => reverses);
const asked = imitations.filter(({ asked: ids }) => ids.length > 0);

describe.each(ledgers)('on %s', (_store, makeLedger) => {
  test.each(imitations)('$name: five concurrent copies of a success are booked once', async (imitation) => {
    const { send, sendAll, booked } = await mount(imitation, makeLedger());
    const transfer = imitation.transfer();
    const responses = await sendAll(Array.from({ length: 5 }, () => transfer.send('success')));
    expect(responses.sort()).toEqual([...Array<string>(4).fill('200 duplicate'), '200 processed']);
    expect(await send(transfer.send('success'))).toBe('200 duplicate');
    expect(await booked(transfer)).toEqual(['paid']);
  });

  test.each(imitations)('$name: a failure is booked once, and no success after it', async (imitation) => {
    const { send, booked } = await mount(imitation, makeLedger());
    const transfer = imitation.transfer();
    expect(await send(transfer.send('failed'))).toBe('200 processed');
    expect(await send(transfer.send('failed'))).toBe('200 duplicate');
    expect(await send(transfer.send('success'))).toBe('422');
    expect(await booked(transfer)).toEqual(['refunded']);
  });

  test.each(imitations)('$name: a failure after a success is a conflict', async (imitation) => {
    const { send, booked } = await mount(imitation, makeLedger());
    const transfer = imitation.transfer();
    expect(await send(transfer.send('success'))).toBe('200 processed');
    expect(await send(transfer.send('failed'))).toBe('422');
    expect(await booked(transfer)).toEqual(['paid']);
  });

  test.concurrent.each(reversing)('$name: a paid transfer is refunded once', async (imitation) => {
    const { send, booked } = await mount(imitation, makeLedger());
    const transfer = imitation.transfer();
    const [success, reversed] = [transfer.send('success'), transfer.send('reversed')];
    const responses = [];
    for (const sent of [success, reversed, reversed, success]) responses.push(await send(sent));
    expect(responses).toEqual(['200 processed', '200 processed', '200 duplicate', '200 duplicate']);
    expect(await booked(transfer)).toEqual(['paid', 'given back']);
  });

  test.concurrent.each(reversing)('$name: a refunded transfer is not refunded a second time', async (imitation) => {
    const { send, booked } = await mount(imitation, makeLedger());
    const transfer = imitation.transfer();
    expect(await send(transfer.send('failed'))).toBe('200 processed');
    expect(await send(transfer.send('reversed'))).toBe('200 duplicate');
    expect(await booked(transfer)).toEqual(['refunded']);
  });

  test.concurrent.each(reversing)('$name: nothing is booked after a reversal that came first', async (imitation) => {
    const { send, booked } = await mount(imitation, makeLedger());
    const transfer = imitation.transfer();
    expect(await send(transfer.send('reversed'))).toBe('200 processed');
    expect(await send(transfer.send('success'))).toBe('200 duplicate');
    expect(await send(transfer.send('failed'))).toBe('200 duplicate');
    expect(await booked(transfer)).toEqual(['given back']);
  });

  test.concurrent.each(reversing)(
    '$name: of a failure and a reversal at the same time one refunds',
    async (imitation) => {
      const { sendAll, booked } = await mount(imitation, makeLedger());
      const transfer = imitation.transfer();
      const kinds = ['failed', 'reversed', 'reversed', 'failed'] as const;
      const responses = await sendAll(kinds.map((kind) => transfer.send(kind)));
      expect(responses.filter((response) => response === '200 processed')).toHaveLength(1);
      expect(responses.every((response) => response.startsWith('200'))).toBe(true);
      expect(await booked(transfer)).toHaveLength(1);
    },
  );

  test.concurrent.each(reversing)(
    '$name: a success and its reversal at the same time give back once',
    async (imitation) => {
      const { sendAll, booked } = await mount(imitation, makeLedger());
      const transfer = imitation.transfer();
      const kinds = ['reversed', 'success', 'reversed', 'success'] as const;
      const responses = await sendAll(kinds.map((kind) => transfer.send(kind)));
      expect(responses.every((response) => response.startsWith('200'))).toBe(true);
      const entries = await booked(transfer);
      expect(entries.filter((entry) => entry === 'given back')).toHaveLength(1);
      expect([['given back'], ['paid', 'given back']]).toContainEqual(entries);
    },
  );

  test.each(asked)('$name: what never came is reconciled by each id that the service takes', async (imitation) => {
    const { send, booked, reconcile } = await mount(imitation, makeLedger());
    for (const name of imitation.asked) {
      for (const [status, kind] of [
        ['SUCCESS', 'success'],
        ['FAILED', 'failed'],
      ] as const) {
        const transfer = imitation.transfer();
        transfer.become(status);
        expect(await reconcile(transfer.ids[name])).toBe('processed');
        expect(await send(transfer.send(kind))).toBe('200 duplicate');
        expect(await reconcile(transfer.ids[name])).toBe('duplicate');
        expect(await booked(transfer)).toEqual([handlers[status]]);
      }
    }
  });

  test.concurrent.each(reversing)(
    '$name: a reversal that never came is reconciled, also after its success',
    async (imitation) => {
      const { send, booked, reconcile, receiver } = await mount(imitation, makeLedger());
      for (const before of [[], ['success']] as const) {
        const transfer = imitation.transfer();
        const { id } = transfer.ids;
        for (const kind of before) await send(transfer.send(kind));
        transfer.become('REVERSED');
        const verdict = async () => (await inspectTransfer({ receiver, id })).verdict;
        expect(await verdict()).toBe('missed');
        expect(await reconcile(id)).toBe('processed');
        expect(await verdict()).toBe('handled');
        expect(await send(transfer.send('reversed'))).toBe('200 duplicate');
        expect(await booked(transfer)).toEqual([...before.map(() => 'paid'), 'given back']);
      }
    },
  );
});
