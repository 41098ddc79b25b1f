import { join } from 'node:path';
import { ESLint } from 'eslint';
import { describe, expect, test } from 'vitest';
import { root } from './pages.js';

// The walls look at imports alone: without types, a planted file need not be on disk.
const wall = '@typescript-eslint/no-restricted-imports';
const gate = 'no-restricted-syntax';
const options: ESLint.Options = {
  cwd: root,
  overrideConfig: { languageOptions: { parserOptions: { projectService: false } } },
  ruleFilter: ({ ruleId }) => ruleId === wall || ruleId === gate,
};
const eslint = new ESLint(options);

async function reportedIn(filePath: string, code: string): Promise<(string | null)[]> {
  const [result] = await eslint.lintText(code, { filePath: join(root, filePath) });
  return (result ?? expect.fail(`${filePath} was not linted`)).messages.map(({ ruleId }) => ruleId);
}

describe.each([
  [
    'core knows no HTTP, no driver and no other room',
    'src/core/planted.ts',
    [
      'express',
      'node:http',
      'node:https',
      'node:net',
      'ioredis',
      'pg',
      'redis',
      'zod',
      'zod/v4/core',
      '../http/responses.js',
      './../http/responses.js',
      '../stores/memory.js',
      '../testing/index.js',
      '../index.js',
    ],
    ['zod/v4', 'node:diagnostics_channel', 'node:async_hooks', './errors.js'],
  ],
  [
    'stores know core, and no driver',
    'src/stores/planted.ts',
    ['ioredis', 'iovalkey', 'redis', 'pg', 'express', 'zod', 'node:http', '../http/body.js', '../testing/index.js'],
    ['node:crypto', './redis-scripts.js', '../core/errors.js'],
  ],
  [
    'http knows core and Node',
    'src/http/body.ts',
    [
      'express',
      'zod',
      'ioredis',
      'body-parser',
      'node:fs',
      '../stores/memory.js',
      '../core/../stores/memory.js',
      '../testing/index.js',
      '../index.js',
    ],
    ['node:http', 'node:http2', './responses.js', '../core/receiver.js'],
  ],
  [
    'the router alone knows Express',
    'src/http/router.ts',
    ['zod', 'ioredis', 'express/lib/router', '../stores/memory.js', '../testing/index.js'],
    ['express', './listener.js', '../core/callback.js'],
  ],
  [
    'client knows core, and calls with fetch',
    'src/client/planted.ts',
    ['express', 'node:http', 'ioredis', 'undici', '../http/responses.js', '../stores/memory.js', '../sandbox/index.js'],
    ['zod/v4', 'node:diagnostics_channel', './errors.js', '../core/receiver.js'],
  ],
  [
    'metrics knows core, and no metrics library',
    'src/metrics/planted.ts',
    ['prom-client', '@opentelemetry/api', 'express', '../client/tally.js', '../http/responses.js', '../index.js'],
    ['node:diagnostics_channel', './table.js', '../core/outcome.js'],
  ],
  [
    'attempt knows core and Node',
    'src/attempt/planted.ts',
    ['express', 'undici', 'zod', '../http/body.js', '../sandbox/options.js', '../testing/index.js', '../index.js'],
    ['node:http', 'node:https', 'node:net', './attempt.js', '../core/timing.js'],
  ],
  [
    'sandbox knows core, attempt and Node',
    'src/sandbox/planted.ts',
    [
      'express',
      'zod',
      'ioredis',
      '../http/body.js',
      '../stores/memory.js',
      '../client/index.js',
      '../testing/index.js',
    ],
    ['node:http', './clock.js', '../core/errors.js', '../attempt/attempt.js'],
  ],
  [
    'testing knows core and attempt',
    'src/testing/planted.ts',
    [
      'vitest',
      'ioredis',
      'express',
      '../stores/memory.js',
      '../http/router.js',
      '../client/index.js',
      '../sandbox/index.js',
      '../index.js',
    ],
    ['node:assert/strict', './fixtures.js', '../core/store.js', '../attempt/attempt.js'],
  ],
  [
    'the command line knows attempt, the sandbox, the client, the verifiers and the shared stores',
    'src/cli/planted.ts',
    [
      'express',
      'ioredis',
      'node:vm',
      '../http/router.js',
      '../stores/memory.js',
      '../client/client.js',
      '../testing/index.js',
      '../core/errors.js',
      '../index.js',
    ],
    [
      'node:util',
      './terminal.js',
      '../attempt/attempt.js',
      '../sandbox/options.js',
      '../client/index.js',
      '../stores/redis.js',
    ],
  ],
  [
    'what all entries share loads no router',
    'src/shared.ts',
    ['express', 'ioredis', './http/router.js', './testing/index.js', './sandbox/index.js', './client/index.js'],
    ['./core/errors.js', './http/options.js', './stores/memory.js'],
  ],
  [
    'the entry for Node loads no router and no handler',
    'src/node.ts',
    ['express', './http/router.js', './http/handler.js', './web.js', './index.js'],
    ['./shared.js', './http/listener.js'],
  ],
  [
    'the entry for web requests loads no router and no listener',
    'src/web.ts',
    ['express', './http/router.js', './http/listener.js', './node.js', './index.js'],
    ['./shared.js', './http/handler.js'],
  ],
  [
    'the root entry is those without Express, and the router',
    'src/index.ts',
    ['express', 'ioredis', './core/errors.js', './http/listener.js', './testing/index.js', './client/index.js'],
    ['./node.js', './web.js', './http/router.js'],
  ],
  [
    'a new room has no door until its wall has one',
    'src/planted/planted.ts',
    ['express', 'ioredis', 'zod', 'node:http', '../core/errors.js', '../testing/index.js'],
    [],
  ],
])('%s', (_title, filePath, forbidden, allowed) => {
  test.each(forbidden)('%s is reported for each kind of import', async (module) => {
    const ways = [
      `import { planted } from '${module}'; export const used = planted;`,
      `import type { planted } from '${module}'; export type Used = typeof planted;`,
      `import * as planted from '${module}'; export const used = planted;`,
      `import '${module}';`,
      `export { planted } from '${module}';`,
      `export * from '${module}';`,
      `import planted = require('${module}'); export const used = planted;`,
    ];
    for (const code of ways) expect(await reportedIn(filePath, code), code).toContain(wall);
  });

  if (allowed.length > 0) {
    test.each(allowed)('%s is not reported', async (module) => {
      const code = `import { planted } from '${module}'; export const used = planted;`;
      expect(await reportedIn(filePath, code)).toEqual([]);
    });
  }
});

test.each([
  "export const later = import('ioredis');",
  "export type Client = import('ioredis').Redis;",
  "export const client = require('ioredis');",
])('the import rules find every kind of import: %s', async (code) => {
  expect(await reportedIn('src/stores/planted.ts', code)).toEqual([gate]);
});

test('no import in src breaks a rule, and no comment disables one', async () => {
  const strict = new ESLint({ ...options, allowInlineConfig: false });
  const results = await strict.lintFiles('src/**/*.ts');
  expect(results.length).toBeGreaterThan(10);
  const reported = results.flatMap(({ filePath, messages }) => messages.map(({ message }) => [filePath, message]));
  expect(reported).toEqual([]);
});

test('the import rules apply to every file of src', async () => {
  const files = (await eslint.lintFiles('src/**/*.ts')).map(({ filePath }) => filePath);
  for (const file of files) {
    const config = (await eslint.calculateConfigForFile(file)) as { rules: Record<string, unknown[]> };
    expect([config.rules[wall]?.[0], config.rules[gate]?.[0]], file).toEqual([2, 2]);
  }
});
