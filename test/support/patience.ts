/** How long a test waits for a server that does not respond: longer than a busy machine takes, shorter than a test may. */
export const patienceMs = 20_000;
