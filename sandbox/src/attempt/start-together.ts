import { setTimeout as pause } from 'node:timers/promises';

/** An endpoint accepts a connection after it is open, and reads the head then. In milliseconds. */
const acceptingMs = 50;

/** An endpoint that makes one TLS handshake after the other would never have all of them open. In milliseconds. */
const longestWaitMs = 5_000;

/**
 * Returns the `beforeBody` of so many concurrent attempts. Each waits there until all have opened their connections, so
 * that their bodies arrive together: otherwise the first one may be handled before the last one is connected.
 */
export function startTogether(attempts: number): () => Promise<void> {
  let missing = attempts;
  let release = (): void => undefined;
  const allOpen = new Promise<void>((resolve) => (release = resolve));
  return async () => {
    missing -= 1;
    if (missing === 0) release();
    const giveUp = new AbortController();
    await Promise.race([allOpen, pause(longestWaitMs, undefined, { signal: giveUp.signal }).catch(() => undefined)]);
    giveUp.abort();
    await pause(acceptingMs);
  };
}
