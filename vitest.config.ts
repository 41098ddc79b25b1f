import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  resolve: {
    alias: [
      { find: /^transfer-callbacks$/, replacement: at('src/index.ts') },
      { find: /^transfer-callbacks\/(client|sandbox|testing)$/, replacement: `${at('src')}/$1/index.ts` },
    ],
  },
  test: {
    include: ['test/**/*.test.ts', 'examples/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Most of the time they wait: for leases, retries, servers.
    maxWorkers: 3,
    coverage: {
      provider: 'v8',
      include: ['src/**'],
      // It runs as a process of its own, whose coverage is not collected; test/sandbox/cli.test.ts tries it all.
      exclude: ['src/cli.ts'],
      reporter: ['text', 'json-summary'],
      thresholds: { lines: 100 },
    },
  },
});
