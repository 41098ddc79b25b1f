/**
 * Calls `onDue` after `ms`, and not before the event loop has read its sockets once more: while the loop was busy, the
 * reply may have come. Does nothing if `ms` is `undefined`. Returns the function that cancels it. Keeps no process alive.
 */
export function setDeadline(ms: number | undefined, onDue: () => void): () => void {
  if (ms === undefined) return () => undefined;
  let turn: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => {
    turn = setImmediate(onDue);
  }, ms).unref();
  return () => {
    clearTimeout(timer);
    clearImmediate(turn);
  };
}

/** Resolves after the event loop has run its timers and read its sockets. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
