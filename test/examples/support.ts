import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, onTestFinished, vi } from 'vitest';
import { buildApp, kill, tied } from '../support/programs/child.js';
import { freePort } from '../support/servers/port.js';

type Environment = Record<string, string | undefined>;

interface Run {
  /** What it has printed until now, on both streams. */
  readonly output: () => string;
  /** Waits for the first match in what it prints; rejects if it ends without. */
  readonly said: (pattern: RegExp) => Promise<RegExpExecArray>;
  /** Resolves with the exit code; `null` for a signal. */
  readonly exitCode: Promise<number | null>;
  readonly send: (signal: NodeJS.Signals) => void;
}

/**
 * Runs an example, without this machine's own REDIS_URL. It is built first: with tsx it takes three times as long to
 * start. `mysql.test.ts` runs its example with tsx.
 */
export function run(example: string, environment: Environment = {}): Run {
  const child = tied(
    spawn(process.execPath, [buildApp(`../../../examples/${example}`)], {
      env: { ...process.env, REDIS_URL: undefined, PORT: undefined, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
  );
  onTestFinished(() => kill(child));
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
  }
  return {
    output: () => printed,
    exitCode: once(child, 'close').then(([code]) => code as number | null),
    send: (signal) => child.kill(signal),
    async said(pattern) {
      await vi.waitUntil(() => pattern.test(printed) || child.stdout.closed);
      return pattern.exec(printed) ?? expect.fail(`${example} ended before it said ${pattern.source}:\n${printed}`);
    },
  };
}

/** Runs an example that serves on PORT, on a free one. Resolves with its output when it listens. */
export async function serve(example: string, environment: Environment = {}): Promise<Run & { url: string }> {
  for (;;) {
    const started = run(example, { ...environment, PORT: String(await freePort()) });
    const [url] = await started.said(/http:\/\/localhost:\S+(?=\s)|EADDRINUSE/);
    // Another process was faster to take the port.
    if (url !== 'EADDRINUSE') return { ...started, url: url.replace('localhost', '127.0.0.1') };
  }
}

export const processed = { status: 200, body: '{"outcome":"processed"}' };
export const duplicate = { status: 200, body: '{"outcome":"duplicate"}' };
