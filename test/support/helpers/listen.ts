import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { onTestFinished } from 'vitest';

/** Calls `listener` with what is published on a channel, until the test has ended. */
export function listen(channel: string, listener: (message: unknown) => unknown): void {
  subscribe(channel, listener);
  onTestFinished(() => void unsubscribe(channel, listener));
}
