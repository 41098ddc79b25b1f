import { graceMs, wasBlocked } from '../core/timers.js';

/**
 * Calls `onDue` after `ms`, and not before the event loop has read its sockets once more: while it was blocked, the reply
 * may have come. Returns the function that cancels it. Keeps no process alive.
 */
export function setTimer(ms: number, onDue: () => void): () => void {
  let turn: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => {
    turn = setImmediate(onDue);
  }, ms).unref();
  return () => {
    clearTimeout(timer);
    clearImmediate(turn);
  };
}

/**
 * Sets a timer for the reply of the server. When the time has passed, waits once more: for `ms` if the event loop was
 * blocked, and for `graceMs` otherwise. Does nothing if `ms` is `undefined`. Returns the function that cancels it. Keeps no
 * process alive.
 */
export function setDeadline(ms: number | undefined, onDue: () => void): () => void {
  if (ms === undefined) return () => undefined;
  const dueAt = performance.now() + ms;
  let cancel = setTimer(ms, () => {
    cancel = setTimer(wasBlocked(dueAt) ? ms : graceMs, onDue);
  });
  return () => {
    cancel();
  };
}

/** Resolves after the event loop has run its timers and read its sockets. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
