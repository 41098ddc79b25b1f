import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { ownEntries } from '../vitest.config.ts';
import HookErrors from './hook-errors.mjs';
import { parts } from './parts.mjs';

const { tests, without, env = {}, testTimeout = 4_000 } = parts[process.env.MUTANTS_PART];

export default defineConfig({
  resolve: { alias: ownEntries },
  test: {
    root: fileURLToPath(new URL('..', import.meta.url)),
    globalSetup: 'test/support/helpers/global-setup.ts',
    setupFiles: 'test/support/helpers/setup.ts',
    include: tests,
    exclude: without,
    isolate: false,
    reporters: [new HookErrors()],
    testTimeout,
    env,
    hookTimeout: 60_000,
  },
});
