/** Runs `work` while the event loop is blocked for `blockedMs` at a time, half of the time. */
export async function besideBusyLoop<T>(blockedMs: number, work: () => Promise<T>): Promise<T> {
  const timer = setInterval(() => {
    for (const until = performance.now() + blockedMs; performance.now() < until;);
  }, 2 * blockedMs);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}
