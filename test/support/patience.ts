/** How long a test waits for a condition: longer than a busy machine takes, shorter than a test may take. */
export const patienceMs = 30_000;

/** Options of `vi.waitFor` and `vi.waitUntil`. test/support/setup.ts makes them the default. */
export const patience = { timeout: patienceMs, interval: 20 } as const;
