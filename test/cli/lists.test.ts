// Both commands with a receiver whose service was defined, and the lists that its configuration exports.
import { describe, expect, test } from 'vitest';
import { redisStore } from 'transfer-callbacks';
import { announced, reversingReceiver, type Status } from '../support/helpers/reversing.js';
import { connectForTest } from '../support/servers/redis-for-file.js';
import { startService } from '../client/support.js';
import { findRedis, folderOf, inspect, reconcile } from './app-support.js';
import { longestLine, objects } from './support.js';

/** How an app exports its lists, where it does. */
const exported = `
  const days = (ids) => ids.map((id) => ({ id, createdAt: Date.now() - 3 * 86_400_000 }));
  export async function* pending() { yield* days(['open', 'missed']); }
  export const paid = async () => days(['paid', 'reversed', 'failed']);`;

/** An app with a service that was defined. It knows these transfers, and nothing was handled before but \`handled\`. */
async function startApp(own = exported, handled: readonly [Status, string][] = [['SUCCESS', 'reversed']]) {
  const known = { missed: 'SUCCESS', paid: 'SUCCESS', reversed: 'REVERSED', failed: 'FAILED' } as const;
  const { baseUrl, received } = await startService(({ url = '' }) => {
    const id = url.slice(1);
    if (id === 'open') return [200, { ...announced('SUCCESS', id), event: 'payout.returning' }];
    const status = (known as Record<string, Status>)[id];
    return status === undefined ? [404, ''] : [200, announced(status, id)];
  });
  const { url, port } = await findRedis();
  const prefix = `${crypto.randomUUID()}:`;
  const { receiver } = reversingReceiver(redisStore(connectForTest(port), { prefix }));
  for (const [status, id] of handled) await receiver.receive(announced(status, id));
  const config = `
    import { Redis } from 'ioredis';
    import { redisStore, transferCallbackReceiver } from 'transfer-callbacks/node';
    import { defineService } from 'transfer-callbacks/client';
    const service = defineService({
      read: ({ event, data }) => ({ state: event, ...data }),
      states: { 'payout.paid': 'SUCCESS', 'payout.bounced': 'FAILED', 'payout.returned': 'REVERSED', 'payout.returning': 'PENDING' },
      baseUrl: '${baseUrl}',
      query: (id, get) => get('/' + id),
    });
    const handle = ({ data: { status, id } }) => console.log('Handled ' + status + ' ' + id);
    export const receiver = transferCallbackReceiver({
      service, store: redisStore(new Redis('${url}'), { prefix: '${prefix}' }), logger: false,
      onSuccess: handle, onFailed: handle, onReversed: handle, retentionMs: 60 * 86_400_000,
    });
    ${own}`;
  return { cwd: await folderOf(config), config, receiver, received };
}

describe('with a configuration of `receiver`, `pending` and `paid` alone', () => {
  test('reconcile --lists handles what is pending, and of what is paid only what was reversed', async () => {
    const { cwd, received } = await startApp();
    const { code, out, err } = await reconcile([], { cwd }, '--lists');
    expect([code, err]).toEqual([
      1,
      'Handled SUCCESS missed\nHandled REVERSED reversed\n' +
        'Transfers older than a day have the status payout.returning. Contact the payout service.\n',
    ]);
    expect(objects(out)).toMatchObject([
      { type: 'transfer', id: 'open', result: 'pending', status: 'payout.returning' },
      { type: 'transfer', id: 'missed', result: 'processed', status: 'payout.paid' },
      { type: 'transfer', id: 'reversed', paid: true, result: 'processed', status: 'payout.returned' },
      { type: 'transfer', id: 'failed', paid: true, result: 'failed', code: 'NOT_HANDLED' },
      { type: 'summary', pending: 1, processed: 1, paid: { unchanged: 1, processed: 1, failed: 1 } },
    ]);
    expect(received.map(({ url }) => url)).toEqual(['/open', '/missed', '/paid', '/reversed', '/failed']);
    const again = await reconcile([], { cwd }, '--lists');
    expect(objects(again.out).at(-1)).toEqual({
      ...{ type: 'summary', pending: 1, duplicate: 1 },
      paid: { unchanged: 1, duplicate: 1, failed: 1 },
    });
  });

  test('reconcile takes ids, too, and inspect shows both records', async () => {
    const { cwd } = await startApp();
    const before = await inspect(['reversed'], { cwd });
    expect(before.code).toBe(1);
    expect(before.out).toContain('  service   payout.returned (REVERSED)\n');
    expect(before.out).toContain(
      '  verdict   missed: The success of the transfer was handled, and its reversal\n            was not.\n',
    );
    expect(before.out).toContain('\n  echo reversed | npx --no transfer-callbacks reconcile\n');
    expect(before.out).not.toContain('  reversal  ');
    expect(longestLine(before.out)).toBeLessThanOrEqual(80);
    const done = await reconcile(['reversed'], { cwd });
    expect([done.code, done.err]).toEqual([0, 'Handled REVERSED reversed\n']);
    const { code, out } = await inspect(['reversed'], { cwd });
    expect(code).toBe(0);
    expect(out).toMatch(/ {2}record {4}handled .*\n {12}facts \["SUCCESS",100,"XAF","payout-reversed"\]\n/);
    expect(out).toMatch(/ {2}reversal {2}handled .*\n {12}facts \["REVERSED",100,"XAF","payout-reversed"\]\n/);
    const json = await inspect(['reversed', '--json'], { cwd });
    expect(objects(json.out)).toMatchObject([
      { verdict: 'handled', record: { state: 'handled', reversal: { state: 'handled' } } },
    ]);
  });
});

test('on a terminal each list has a line of its own, and what is unchanged has none', async () => {
  const { cwd } = await startApp();
  const { out } = await reconcile([], { cwd, terminal: true }, '--lists');
  expect(out.split('\n')).toEqual([
    'pending    open  payout.returning',
    'processed  missed  payout.paid',
    'processed  reversed  payout.returned',
    expect.stringMatching(/^failed {5}failed {2}payout\.bounced {2}The service reports/),
    '1 pending, 1 processed',
    'Paid: 1 unchanged, 1 processed, 1 failed',
    '',
  ]);
});

test('a list may be alone, and an array; without fault the exit code is 0', async () => {
  const { cwd } = await startApp(
    "export const paid = [{ id: 'paid', createdAt: 0 }, { id: 'reversed', createdAt: 0 }];",
  );
  const { code, out, err } = await reconcile([], { cwd }, '--lists');
  expect([code, err]).toEqual([0, 'Handled REVERSED reversed\n']);
  expect(objects(out).at(-1)).toEqual({ type: 'summary', paid: { unchanged: 1, processed: 1 } });
  const empty = await startApp('export const pending = [];');
  const none = await reconcile([], { cwd: empty.cwd, terminal: true }, '--lists');
  expect([none.code, none.out]).toEqual([0, 'No transfers\n']);
});

test('a list that throws ends the command with its reason, and exit code 1', async () => {
  const { cwd } = await startApp("export async function* pending() { throw new Error('no connection'); }");
  const { code, out, err } = await reconcile([], { cwd }, '--lists');
  expect([code, out]).toEqual([1, '']);
  expect(err).toContain('transfer-callbacks: `pending` threw: no connection');
});

test('what does not fit is named in one line, with exit code 2', async () => {
  const { config } = await startApp('');
  const noQuery = config.replace(/query: .*\n/, '\n');
  const noReversal = config.replace(/, 'payout.returned': 'REVERSED'/, '').replace(/onReversed: handle,/, '');
  const cases: [own: string, message: string][] = [
    [config, 'Expected the configuration to export `pending` or `paid` for --lists.'],
    [`${config} export const pending = 5;`, 'Expected `pending` to be an iterable or an async iterable, got 5.'],
    [`${config} export const paid = () => {};`, 'Expected `paid` to be an iterable or an async iterable, got null.'],
    [`${noReversal} export const paid = [];`, 'Expected `paid` to be left out, because no state of the service'],
    [noQuery, 'Expected the `service` of the receiver of transfer-callbacks.config.mjs to be one that can be asked'],
  ];
  for (const [text, message] of cases) {
    const { code, out, err } = await reconcile([], { cwd: await folderOf(text) }, '--lists');
    expect([code, out], message).toEqual([2, '']);
    expect(err).toContain(`transfer-callbacks: ${message}`);
    expect(err.trim().split('\n'), message).toHaveLength(1);
  }
});
