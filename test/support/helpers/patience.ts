/**
 * How long a test waits for a server, a process or a response: longer than a busy machine takes, shorter than most
 * tests may take.
 */
export const patienceMs = 30_000;
