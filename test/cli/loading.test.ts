import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { containing } from '../support/helpers/containing.js';
import { freePort } from '../support/servers/port.js';
import { folderOf, inspect, startInspect, startReconcile } from './app-support.js';

/** An app that waits for its Redis, which is down, and lets `onError` decide what becomes of that. */
const toWaiting = (port: number, onError: string): string => `
  import { Redis } from 'ioredis';
  const redis = new Redis(${port}, '127.0.0.1');
  redis.on('error', ${onError});
  await new Promise((resolve) => redis.once('ready', resolve));
  export const receiver = {};`;

describe('an app that never finishes loading', () => {
  test('fails immediately where nothing is left to wait for', async () => {
    const cwd = await folderOf(toWaiting(await freePort(), '() => redis.disconnect()'));
    const err = containing(
      'transfer-callbacks: The command cannot finish: your app waits for something that never comes',
    );
    expect(await startInspect(['a'], { cwd }).ended).toEqual({ code: 3, out: '', err });
    expect(await startReconcile(['a'], { cwd }).ended).toEqual({ code: 1, out: '', err });
  });

  test('is named after 3 s, and fails after 30 s, where it tries for ever', async () => {
    const cwd = await folderOf(toWaiting(await freePort(), '() => undefined'));
    const startedAt = performance.now();
    const { code, out, err } = await startReconcile(['a'], { cwd }).ended;
    expect([code, out, err.split('\n')]).toEqual([
      1,
      '',
      [
        'Still loading transfer-callbacks.config.mjs.',
        expect.stringMatching(
          /^transfer-callbacks: transfer-callbacks.config.mjs did not finish loading within 30 s\./,
        ),
        '',
      ],
    ]);
    expect(performance.now() - startedAt).toBeGreaterThan(30_000);
  });
});

describe('a file that Node cannot read', () => {
  test('is named with the line to correct', async () => {
    const cases: [name: string, text: string, message: RegExp][] = [
      [
        'transfer-callbacks.config.mjs',
        'export const a = 1;\nexport const b = {\n',
        /end of input\. Correct .*mjs:3\.$/,
      ],
      ['transfer-callbacks.config.cjs', '\nexports.a = {;\n', /Unexpected token ';'\. Correct .*cjs:2\.$/],
      ['transfer-callbacks.config.mjs', "import { readfile } from 'node:fs';\n", /'readfile'\. Correct .*mjs:1\.$/],
      // The line in the text is not that of the file: the file has the call.
      ['transfer-callbacks.config.mjs', "JSON.parse('{');\n", /in JSON at position 1.*\.config\.mjs:1\)$/],
    ];
    for (const [name, text, message] of cases) {
      const { code, out, err } = await inspect(['a'], { cwd: await folderOf(text, name) });
      expect([code, out]).toEqual([2, '']);
      expect(err.trimEnd()).toMatch(message);
      expect(err).toMatch(/^transfer-callbacks: .* cannot be loaded: [^\n]*\n$/);
    }
  });

  test('a module in a CommonJS project, as `npm init` makes, is to be renamed', async () => {
    const cwd = await folderOf("import 'node:fs';\nexport const receiver = {};\n", 'transfer-callbacks.config.js');
    await writeFile(join(cwd, 'package.json'), '{"type":"commonjs"}');
    const { code, err } = await inspect(['a'], { cwd });
    expect([code, err]).toEqual([
      2,
      expect.stringMatching(/config\.js:1\)\. Rename it to transfer-callbacks\.config\.mjs\.\n$/),
    ]);
  });

  test.skipIf(Boolean(Reflect.get(process.features, 'typescript')))(
    'TypeScript is to be built, or loaded with tsx',
    async () => {
      const cwd = await folderOf('const a: number = 1;\nexport const receiver = a;\n', 'transfer-callbacks.config.ts');
      const { code, err } = await inspect(['a'], { cwd });
      expect(code).toBe(2);
      expect(err).toMatch(/Import the JavaScript that your build makes, or set NODE_OPTIONS='--import tsx'\.\n$/);
      const loaded = await startInspect(['a'], { cwd, env: { NODE_OPTIONS: '--import tsx' } }).ended;
      expect(loaded.err).toContain(
        'Expected the receiver of transfer-callbacks.config.ts to be made by transferCallbackReceiver().',
      );
    },
  );
});

test('transfer-callbacks.config.mjs is looked for first', async () => {
  const cwd = await folderOf('export const receiver = 1;');
  await writeFile(join(cwd, 'transfer-callbacks.config.js'), 'export const receiver = 2;');
  expect((await inspect(['a'], { cwd })).err).toContain('Expected the receiver of transfer-callbacks.config.mjs');
});
