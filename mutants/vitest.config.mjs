import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { ownEntries } from '../vitest.config.ts';
import { parts } from './parts.mjs';

const { tests, without } = parts[process.env.MUTANTS_PART];

export default defineConfig({
  resolve: { alias: ownEntries },
  test: {
    root: fileURLToPath(new URL('..', import.meta.url)),
    globalSetup: 'test/support/global-setup.ts',
    setupFiles: 'test/support/setup.ts',
    include: tests,
    exclude: without,
    isolate: false,
    // Long enough for every test, and short for a mutant that waits for ever.
    testTimeout: 4_000,
    hookTimeout: 60_000,
  },
});
