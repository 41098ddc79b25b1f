import { parts, reportOf } from './parts.mjs';

const part = process.env.MUTANTS_PART;
/** Where `--who` keeps everything: it has no hand in the files of a run beside it. */
const reach = process.env.MUTANTS_REACH;

/** @type {import('@stryker-mutator/api/core').PartialStrykerOptions} */
export default {
  mutate: parts[part].mutate,
  testRunner: 'vitest',
  plugins: [
    '@stryker-mutator/vitest-runner',
    ...['messages', 'reach'].map((name) => new URL(`./${name}.mjs`, import.meta.url).href),
  ],
  vitest: { configFile: 'mutants/vitest.config.mjs', related: false },
  coverageAnalysis: 'perTest',
  // The tests of the stores wait for leases and servers: one after another they take over five minutes.
  dryRunTimeoutMinutes: 20,
  thresholds: { high: 100, low: parts[part].least, break: parts[part].least },
  ignorers: ['messages'],
  // What runs only while a module is loaded runs before the mutant of a test is active.
  ignoreStatic: true,
  ignorePatterns: ['bench', 'coverage', 'dist', '.test'],
  concurrency: parts[part].concurrency ?? 3,
  timeoutMS: 6_000,
  timeoutFactor: 2,
  tempDirName: reach ?? '.test/mutants',
  incremental: true,
  incrementalFile: reportOf(part),
  reporters: reach === undefined ? ['clear-text', 'progress-append-only'] : ['reach'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
};
