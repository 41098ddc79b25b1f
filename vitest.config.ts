import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export const ownEntries = [
  { find: /^transfer-callbacks$/, replacement: at('src/index.ts') },
  { find: /^transfer-callbacks\/(\w+)$/, replacement: `${at('src')}/$1` },
  { find: /^transfer-sandbox$/, replacement: at('sandbox/src/index.ts') },
];

/** The zod in a folder, in place of the one that is installed as `zod`. */
const zodIn = (folder: string) => [
  { find: /^zod$/, replacement: at(`${folder}/index.js`) },
  { find: /^zod\/v4-mini$/, replacement: at(`${folder}/v4/mini/index.js`) },
  { find: /^zod\/(v4\/.*\.js)$/, replacement: `${at(folder)}/$1` },
  { find: /^zod\/(v4.*)$/, replacement: `${at(folder)}/$1/index.js` },
];

/** The lowest zod of each major version that the peer range allows. zod 3 carries zod 4 at `zod/v4`. */
const lowestZods = { 'lowest zod 3': 'node_modules/zod3/dist/esm', 'lowest zod 4': 'node_modules/zod40' } as const;

/** What `npm run test:quick` runs: no Redis, no PostgreSQL, no browser. */
export const quickTests = ['test/core', 'test/lib', 'test/http', 'test/stores/memory.test.ts'];

const inQuickProcess = quickTests.map((path) => (path.endsWith('.ts') ? path : `${path}/**/*.test.ts`));

const inSharedProcess = [
  'test/{client,metrics,stores,testing}/**/*.test.ts',
  'sandbox/test/{attempt,deliver,service,services}/**/*.test.ts',
  'examples/*.test.ts',
];

const inOwnProcess = ['{test,sandbox/test}/**/*.test.ts'];

/** What reads zod: the schema and its issues, and the schemas of the pages, each in a receiver. */
const onLowestZods = ['test/core/callback.test.ts', 'test/docs/schemas.test.ts'];

/** What `npm test` leaves to `npm run test:full`. No promise rests on these files alone: test/docs/guarantees.test.ts. */
export const longTests = {
  inSharedProcess: [
    'test/client/{flood,reconcile/scale}.test.ts',
    'test/stores/redis.test.ts',
    'test/stores/sql-{connections,mysql*,pool}.test.ts',
    'test/testing/store-contract*.test.ts',
  ],
  inOwnProcess: [
    'test/cli/{config,inspect*,reconcile*,usage}.test.ts',
    'sandbox/test/cli/{trigger,usage}.test.ts',
    'sandbox/test/console/**/*.test.ts',
    'test/{package,schedules}/**/*.test.ts',
    'test/docs/snippets.test.ts',
    'test/examples/**/*.test.ts',
    'test/faults/{held-up,ledger,redis-readme,transfers}.test.ts',
  ],
};

/**
 * What installs packages by the gigabyte, starts dozens of processes, or plays every case of `check`: once
 * a week, and before a release. No promise rests on it, either.
 */
export const weeklyTests = [
  'test/{hosts,sql}/**/*.test.ts',
  'sandbox/test/{cli/check/*,cli/trigger-service,demo/*,package/**/*}.test.ts',
  'test/cli/{loading,secrets}.test.ts',
  'test/examples/{dynamodb-store,mongo-store}.test.ts',
  'test/faults/soak.test.ts',
  'test/package/{express-projects,release}.test.ts',
  'test/schedules/long-searches.test.ts',
];

/**
 * Which test runs when. A line is a way to run, below in `projects`. A file belongs to the last column that has it, and to the
 * first line of the upper three. Those on the lowest zods run three times.
 */
const table = {
  quick: { short: inQuickProcess, long: [], weekly: [] },
  shared: { short: inSharedProcess, long: longTests.inSharedProcess, weekly: [] },
  'own process': { short: inOwnProcess, long: longTests.inOwnProcess, weekly: weeklyTests },
  'lowest zod 3': { short: [], long: onLowestZods, weekly: [] },
  'lowest zod 4': { short: [], long: onLowestZods, weekly: [] },
};

/** Which columns run: `npm test` is `short`, `npm run test:weekly` is `weekly`, and `npm run test:full` has no `TESTS`. */
const columns = {
  short: { runs: ['short'], leaves: ['long', 'weekly'] },
  rest: { runs: ['long'], leaves: ['weekly'] },
  weekly: { runs: ['weekly'], leaves: [] },
  all: { runs: ['short', 'long'], leaves: ['weekly'] },
} as const;

const { runs, leaves } = columns[(process.env.TESTS ?? 'all') as keyof typeof columns];

function select(name: keyof typeof table, others: readonly string[] = []) {
  const line = table[name];
  return {
    name,
    include: runs.flatMap((column) => line[column]),
    exclude: ['**/node_modules/**', ...leaves.flatMap((column) => line[column]), ...others],
  };
}

/**
 * They end what hangs, and judge no speed: a busy machine takes several times as long as an idle one. A test waits less long
 * for a condition than it may take, so that it ends with what the condition says.
 */
function limits(testTimeout: number, patienceMs: number) {
  return {
    setupFiles: 'test/support/helpers/setup.ts',
    provide: { patienceMs },
    expect: { poll: { timeout: patienceMs } },
    testTimeout,
    hookTimeout: 2 * testTimeout,
  };
}

/**
 * Beside twelve busy processes on two cores the tests of the core and HTTP take up to 2 s, and beside a full run of all tests
 * up to 7 s. A file that takes longer says so.
 */
const quickLimits = limits(20_000, 15_000);
const usualLimits = limits(60_000, 30_000);

export default defineConfig({
  test: {
    globalSetup: 'test/support/helpers/global-setup.ts',
    reporters: [
      at('test/support/helpers/quiet-reporter.ts'),
      ...(process.env.GITHUB_ACTIONS ? ['github-actions'] : []),
    ],
    // Tests of leases and retries take seconds.
    slowTestThreshold: 5_000,
    pool: 'forks',
    // Most files wait most of the time, for leases, retries and servers.
    maxWorkers: 5,
    // A test that passes at the second attempt hides a fault, in the package or in the test.
    retry: 0,
    projects: [
      // In these a process imports the package once and runs one file after another, which takes a third of the processor time.
      {
        resolve: { alias: ownEntries },
        test: { ...select('quick'), isolate: false, ...quickLimits },
      },
      {
        resolve: { alias: ownEntries },
        test: { ...select('shared', inQuickProcess), isolate: false, ...usualLimits },
      },
      {
        resolve: { alias: ownEntries },
        // They read warnings and unhandled errors of their process, or start others: each file has a process of its own.
        test: {
          ...select('own process', [...inQuickProcess, ...inSharedProcess]),
          ...usualLimits,
          // Node itself loads the apps of test/cli, whose commands run in the process of their test.
          server: { deps: { external: [/\.test\/apps/] } },
        },
      },
      ...(['lowest zod 3', 'lowest zod 4'] as const).map((name) => ({
        resolve: { alias: [...ownEntries, ...zodIn(lowestZods[name])] },
        test: {
          ...select(name),
          isolate: false,
          server: { deps: { inline: [/zod3|zod40/] } },
          ...quickLimits,
        },
      })),
    ],
    coverage: {
      provider: 'v8',
      include: ['src/**', 'sandbox/src/**'],
      // It runs as a process of its own, whose coverage is not collected; test/cli tries it all.
      // The files of the console run in a browser, where nothing counts them: sandbox/test/console.
      // SQL libraries are tried on their servers once a week: test/sql.
      exclude: ['{src,sandbox/src}/cli/**', 'sandbox/src/service/console/**', 'src/stores/sql/libraries.ts'],
      reporter: ['text', 'json-summary'],
      thresholds: { lines: 99 },
    },
  },
});
