/** Resolves after `ms`. With `keepAlive: false` a process that has nothing else to do may end meanwhile. */
export function pause(ms: number, { keepAlive = true } = {}): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    if (!keepAlive) timer.unref();
  });
}
