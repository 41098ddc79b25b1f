import { describe, expect, test } from 'vitest';
import { folderOf, inspect, reconcile, startApp, startInspect, startReconcile, toConfig } from './app-support.js';
import { objects } from './support.js';

test('the file may be a module or CommonJS, with its exports in `default`', async () => {
  const app = await startApp();
  await app.transfer('success-1');
  const common = app.config
    .replaceAll(/import (\{.*\}) from (.*);/g, 'const $1 = require($2);')
    .replaceAll('export const', 'const')
    .concat('\nmodule.exports = { receiver };');
  const inDefault = app.config.replaceAll('export const', 'const').concat('\nexport default { receiver };');
  for (const [name, text] of [
    ['transfer-callbacks.config.mjs', app.config],
    ['transfer-callbacks.config.js', inDefault],
    ['transfer-callbacks.config.cjs', common],
  ] as const) {
    const { code, out, err } = await inspect(['success-1', '--json'], { cwd: await folderOf(text, name) });
    expect([name, code, err]).toEqual([name, 0, '']);
    expect(objects(out)).toMatchObject([{ verdict: 'handled' }]);
  }
});

test('another file is given with --config, and is in the command that is printed', async () => {
  const app = await startApp();
  await app.transfer('no-callback-1');
  const cwd = await folderOf(app.config, 'ops.mjs');
  const { code, out } = await inspect(['no-callback-1', '--config', 'ops.mjs'], { cwd });
  expect(code).toBe(1);
  expect(out).toContain('\n  echo no-callback-1 | npx --no transfer-callbacks reconcile --config ops.mjs\n');
});

// ioredis without its offline queue rejects each command until it is connected, and CommonJS cannot await that.
test('inspect waits for a store that is connecting', async () => {
  const app = await startApp();
  const id = await app.transfer('payout-1');
  const config = app.config.replace(
    /new Redis\(('[^']*')\)/,
    `((redis) => (setTimeout(() => redis.connect(), 1_000), redis))(new Redis($1, { lazyConnect: true, enableOfflineQueue: false }))`,
  );
  expect(config).not.toBe(app.config);
  const { code, out } = await inspect([id], { cwd: await folderOf(config), terminal: true });
  expect(out).toContain('SUCCESS');
  expect([code, out.includes('undecided')]).toEqual([0, false]);
});

describe('a file that has not what a command needs', () => {
  test('is named in one line, with exit code 2', async () => {
    const cases: [config: string, message: string][] = [
      ['export const receiver = null;', 'Expected the receiver of ops.mjs to be made by transferCallbackReceiver().'],
      [
        'export const receiver = { receive() {}, inspect() {}, close() {} };',
        'Expected the receiver of ops.mjs to be made by transferCallbackReceiver(). It has no `options`.',
      ],
      ["throw new Error('no `pool` here');", 'ops.mjs cannot be loaded: no `pool` here (/'],
      ["import 'not-installed';", "ops.mjs cannot be loaded: Cannot find package 'not-installed'"],
    ];
    for (const [config, message] of cases) {
      const cwd = await folderOf(config, 'ops.mjs');
      const { code, out, err } = await inspect(['a', '--config', 'ops.mjs'], { cwd });
      expect([code, out]).toEqual([2, '']);
      expect(err).toContain(`transfer-callbacks: ${message}`);
      expect(err.trim().split('\n')).toHaveLength(1);
      if (config.startsWith('throw')) expect(err).toMatch(/\/ops\.mjs:1\)\n$/);
    }
  });

  test('is shown an example: without a file or a receiver there is nothing to ask', async () => {
    const example = "export { receiver } from './dist/payouts.js';";
    const without = await reconcile(['a'], {});
    expect([without.code, without.out]).toEqual([2, '']);
    expect(without.err).toMatch(/Expected transfer-callbacks\.config\.mjs in \/.*\. For example:/);
    expect(without.err).toContain(example);
    const cwd = await folderOf('export const other = 1;');
    const half = await inspect(['a'], { cwd });
    expect([half.code, half.out]).toEqual([2, '']);
    expect(half.err).toContain('Expected transfer-callbacks.config.mjs to export receiver. For example:');
    const nowhere = await inspect(['a', '--config', 'nowhere.mjs'], { cwd });
    expect(nowhere).toEqual({
      code: 2,
      out: '',
      err: 'transfer-callbacks: Expected --config to name a file that exists.\n',
    });
  });

  test('has no store in memory: another process would find it empty, and handle all transfers again', async () => {
    const config = await toConfig('any:', 'http://127.0.0.1:1');
    const inMemory = config.replace('{ redisStore,', '{ memoryStore,').replace(/redisStore\(.*\)/, 'memoryStore()');
    const cwd = await folderOf(inMemory);
    for (const [command, instead] of [
      [reconcile, 'reconcileTransfers'],
      [inspect, 'inspectTransfer'],
    ] as const) {
      const expected = `Expected a store that processes share, got memoryStore(). Call \`${instead}\` in the app.`;
      expect(await command(['a'], { cwd })).toEqual({ code: 2, out: '', err: `transfer-callbacks: ${expected}\n` });
    }
  });
});

test('an app that fails after it was loaded ends the command with one sentence', async () => {
  const failing = `setTimeout(() => { throw new Error('the driver broke'); }); await new Promise(() => undefined);`;
  const cwd = await folderOf(failing);
  const err = 'transfer-callbacks: the driver broke\n';
  expect(await startInspect(['a'], { cwd }).ended).toEqual({ code: 3, out: '', err });
  expect(await startReconcile(['a'], { cwd }).ended).toEqual({ code: 1, out: '', err });
});
