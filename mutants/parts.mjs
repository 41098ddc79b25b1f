/**
 * What each part mutates, the `least` share of its mutants that its tests must catch, in percent, and those tests. `without`
 * are those that take long and say nothing more about single lines: what happens by chance, under load, or on many servers.
 * `testTimeout` is longer than any test of the part takes, and short, because many a mutant never ends. Default 4 000 ms.
 */
export const parts = {
  core: {
    least: 96,
    mutate: ['src/{core,lib}/**/*.ts', '!src/lib/slots.ts'],
    tests: ['test/{core,lib}/**/*.test.ts', 'test/stores/memory.test.ts'],
    // It loads modules again. Their constants would count as tested by it, although no mutant is active then.
    without: ['test/core/second-copy.test.ts'],
  },
  http: {
    least: 95,
    mutate: ['src/http/**/*.ts'],
    tests: ['test/http/**/*.test.ts'],
    without: [],
  },
  stores: {
    least: 95,
    mutate: ['src/stores/{memory,redis/**/*}.ts'],
    tests: ['test/stores/{memory,redis*}.test.ts', 'test/faults/redis-refuses-writes.test.ts'],
    without: [],
    testTimeout: 10_000,
  },
  // Its tests wait for servers: six runs at a time.
  sql: {
    least: 91,
    mutate: ['src/stores/sql/**/*.ts', '!src/stores/sql/{libraries,library-transactions,turned-transaction}.ts'],
    tests: ['test/stores/sql-*.test.ts'],
    without: [],
    testTimeout: 30_000,
    concurrency: 6,
  },
  // On the real libraries, which the tests install.
  libraries: {
    least: 84,
    mutate: ['src/stores/sql/{libraries,library-transactions,turned-transaction}.ts'],
    tests: ['test/sql/{stores,handlers}.test.ts', 'test/stores/sql-{options,tx,undo}.test.ts'],
    without: [],
    env: { SQL_DATABASES: 'PostgreSQL 18,MariaDB,SQLite' },
    testTimeout: 120_000,
    concurrency: 4,
  },
  client: {
    least: 97,
    mutate: ['src/client/**/*.ts', 'src/lib/slots.ts'],
    // What a definition reads is tested with the receiver that takes it.
    tests: ['test/client/**/*.test.ts', 'test/core/{service*,schema,made-facts,ignored,other,verify}.test.ts'],
    without: ['test/client/{flood,reconcile/scale}.test.ts'],
    testTimeout: 10_000,
  },
  sandbox: {
    least: 85,
    mutate: ['sandbox/src/{service,attempt}/*.ts'],
    tests: ['sandbox/test/{service,attempt,deliver}/**/*.test.ts'],
    without: ['sandbox/test/service/{limit-per-origin,stream}.test.ts'],
  },
};

/** The file of the last run's results, within the repository. The next run repeats what has changed since. */
export const reportOf = (part) => `.test/mutants-${part}.json`;
