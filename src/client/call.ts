import type { ServiceErrorBody } from './errors.js';

/** What came back of one call: an answer, or the error that stood in its way. */
export type Answer =
  { came: true; status: number; text: string; retryAfterMs: number | undefined } | { came: false; error: unknown };

export interface Call {
  readonly url: string;
  readonly init: RequestInit;
  /** What must never be shown. */
  readonly secrets: readonly string[];
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
  readonly fetch: typeof fetch;
}

/** Makes one call and reads all of the answer, within `timeoutMs`. Never rejects. */
export async function callOnce({ url, init, secrets, timeoutMs, signal, fetch }: Call): Promise<Answer> {
  // Not AbortSignal.any: on Node 20 it leaves something behind on a signal that outlives the call.
  const controller = new AbortController();
  const abort = (): void => {
    controller.abort(signal?.reason);
  };
  const timer = setTimeout(() => {
    controller.abort(new DOMException(`Not answered within ${timeoutMs} ms.`, 'TimeoutError'));
  }, timeoutMs);
  signal?.addEventListener('abort', abort);
  async function answer(): Promise<Answer> {
    // A redirect would carry the secret to wherever it points.
    const response = await fetch(url, { ...init, redirect: 'manual', signal: controller.signal });
    const { status, headers } = response;
    return { came: true, status, text: await response.text(), retryAfterMs: retryAfterOf(headers.get('retry-after')) };
  }
  const aborted = new Promise<never>((_, reject) => {
    controller.signal.addEventListener('abort', () => {
      reject(controller.signal.reason as Error);
    });
  });
  try {
    // A `fetch` of the user's may not heed its signal.
    return await Promise.race([answer(), aborted]);
  } catch (error) {
    return { came: false, error: controller.signal.aborted ? error : shownWithout(secrets, error) };
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  }
}

const attempts = 3;
const firstPauseMs = 250;
/** Whoever asks for longer is told so by the error: the caller knows better what to do meanwhile. */
const longestPauseMs = 10_000;

/** Makes a call that changes nothing again while the service cannot answer it, up to 3 times, with jittered backoff. */
export async function callPatiently(call: Call): Promise<Answer> {
  for (let attempt = 1; ; attempt += 1) {
    const answer = await callOnce(call);
    if (attempt === attempts || !isPassing(answer)) return answer;
    const backoffMs = firstPauseMs * 2 ** (attempt - 1) * (0.5 + Math.random());
    const pauseMs = Math.max(backoffMs, (answer.came ? answer.retryAfterMs : undefined) ?? 0);
    if (pauseMs > longestPauseMs) return answer;
    await pauseUnlessAborted(pauseMs, call.signal);
    if (call.signal?.aborted) return { came: false, error: call.signal.reason };
  }
}

/**
 * The reason of a failed call, and nothing but its name, message and code: an error of fetch may carry the bytes that
 * came, and in them what was sent.
 */
function shownWithout(secrets: readonly string[], error: unknown): Error {
  const cause = (error as { cause?: unknown } | undefined)?.cause ?? error;
  const { name, message, code } = (cause ?? {}) as Partial<NodeJS.ErrnoException>;
  // Where a name has several addresses, the error of them all has a code and no message.
  const shown = new Error(redacted(message === '' ? String(code) : String(message ?? cause), secrets));
  return Object.assign(shown, { name: name ?? shown.name, code });
}

/** A text without what must not be shown, should it have come back. */
function redacted(text: string, secrets: readonly string[]): string {
  return secrets.reduce((clean, secret) => clean.replaceAll(secret, '[redacted]'), text);
}

/** Whether it may be otherwise soon. 429 is not documented (service §8), but says so wherever it is used. */
function isPassing(answer: Answer): boolean {
  return !answer.came || answer.status >= 500 || answer.status === 429;
}

function pauseUnlessAborted(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const over = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', over);
      resolve();
    };
    const timer = setTimeout(over, ms);
    signal?.addEventListener('abort', over);
    if (signal?.aborted) over();
  });
}

/** Seconds or a date, as HTTP has it; `undefined` for anything else. */
function retryAfterOf(value: string | null): number | undefined {
  if (value === null) return undefined;
  const ms = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The documented error body (service §2.3), if `text` is one. */
export function errorBodyOf(text: string, secrets: readonly string[]): ServiceErrorBody | undefined {
  const { error, statusCode, message, data } = (parsed(text) ?? {}) as Partial<Record<keyof ServiceErrorBody, unknown>>;
  if (error !== true || typeof statusCode !== 'number' || typeof message !== 'string' || data !== null)
    return undefined;
  // A service that repeats what it was sent must not put it into our logs.
  return { error, statusCode, message: redacted(message, secrets), data };
}
