import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { vi } from 'vitest';
import { forkApp, hasEnded, kill } from './child.js';

export interface MerchantOptions {
  readonly redisUrl: string;
  /** Its handlers wait until they are told how to end. Default: they succeed immediately. */
  readonly handlersWait?: boolean;
  readonly leaseMs?: number;
  readonly storeTimeoutMs?: number;
  readonly handlerTimeoutMs?: number;
  readonly inFlightWaitMs?: number;
}

export interface Telling {
  readonly id: string;
  readonly how: 'succeed' | 'fail';
}

export type MerchantMessage =
  | { readonly port: number }
  | { readonly handling: string }
  | { readonly aborted: string; readonly code: string }
  | { readonly closing: true };

/** A merchant's app in a separate process. */
export interface Merchant {
  readonly url: string;
  /** How often a handler was run for this id. */
  runs(id: string): number;
  /** Waits until it has said this. Resolves with the whole message. */
  says(message: Partial<Record<string, unknown>>): Promise<MerchantMessage>;
  tell(id: string, how: Telling['how']): void;
  signal(signal: NodeJS.Signals): void;
  readonly exitCode: Promise<number | null>;
}

/** Longer than elsewhere: a test file starts eight of these processes at the same time. */
const patienceMs = 60_000;
const started = new Set<ChildProcess>();

/** Ends all of them, for an `afterAll`. */
export async function endMerchants(): Promise<void> {
  await Promise.all([...started].map(kill));
}

/** Starts a merchant and waits until it listens; `endMerchants` ends it. */
export async function startMerchant(options: MerchantOptions): Promise<Merchant> {
  const child = forkApp('merchant-app.ts', options);
  started.add(child);
  const said: MerchantMessage[] = [];
  child.on('message', (message) => said.push(message as MerchantMessage));
  const exitCode = once(child, 'exit').then(([code]) => code as number | null);

  await vi.waitUntil(() => said.length > 0 || hasEnded(child), { timeout: patienceMs, interval: 5 });
  const [first] = said;
  if (first === undefined || !('port' in first)) throw new Error('The merchant did not start.');
  return {
    url: `http://127.0.0.1:${first.port}`,
    runs: (id) => said.filter((message) => 'handling' in message && message.handling === id).length,
    says(message) {
      const wanted = Object.entries(message);
      const findSaid = () =>
        said.find((each) => wanted.every(([name, value]) => (each as Record<string, unknown>)[name] === value));
      return vi.waitUntil(findSaid, { timeout: patienceMs, interval: 5 });
    },
    tell: (id, how) => child.send({ id, how } satisfies Telling),
    signal: (signal) => child.kill(signal),
    exitCode,
  };
}
