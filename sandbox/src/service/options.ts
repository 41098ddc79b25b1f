import { isIP } from 'node:net';
import {
  invalidArgument,
  invalidSecret,
  onlyKnownOptions,
  requireBoolean,
  requireFunction,
  wholeNumber,
} from '../../../src/lib/checks.js';
import { isLoopback } from '../attempt/address.js';
import { requireAttemptHeaders, type AttemptHeaders } from '../attempt/headers.js';
import type { SandboxAttempt } from './series.js';
import { maxSpeed } from './clock.js';
import { requireScenario, type TransferScenario } from './scenarios.js';

/** Options of `transferSandbox`. */
export interface TransferSandboxOptions {
  /**
   * Where to listen; 0 for any free port.
   * @default 0
   */
  port?: number | undefined;
  /**
   * The address to listen at. Other machines cannot reach the default.
   * @default '127.0.0.1'
   */
  host?: string | undefined;
  /**
   * The merchant's key. The unusable keys of `keys` are made from it.
   * @default 'sandbox-key'
   */
  apiKey?: string | undefined;
  /**
   * The secret that belongs to `apiKey`.
   * @default 'sandbox-secret'
   */
  apiSecret?: string | undefined;
  /**
   * Where callbacks go for transfers created without a `callbackUrl`; a function returns it for an externalId, as
   * `transferToken(secret).urlFor` does. Without it only a query shows the final status of those transfers.
   * @default none
   */
  callbackUrl?: string | ((externalId: string) => string) | undefined;
  /**
   * Sent with every callback, for endpoints behind `headerToken` or `basicAuth`. A function makes them from the bytes
   * of each body, for `hmacSignature`.
   * @default none
   */
  callbackHeaders?: AttemptHeaders | undefined;
  /**
   * From a transfer's creation to its final status, in milliseconds of sandbox time. The default is a guess.
   * @default 1_000
   */
  finalAfterMs?: number | undefined;
  /**
   * How many times faster than real time sandbox time runs: at 1 000, 30 s take 30 ms.
   * @default 1
   */
  speed?: number | undefined;
  /**
   * `manual`: sandbox time starts at 2026-01-15T10:30:00.000Z and moves only by `advance(ms)`. Excludes `speed`.
   * @default the real time
   */
  clock?: 'manual' | undefined;
  /**
   * How long one attempt waits for its response, in milliseconds of real time. The default is a guess.
   * @default 10_000
   */
  attemptTimeoutMs?: number | undefined;
  /**
   * The seed of all ids. Two sandboxes with the same seed make the same ids in the same order. Fix it only beside a
   * store that the test makes: a store that outlives the sandbox takes the ids of the next run for handled callbacks.
   * @default random
   */
  seed?: number | undefined;
  /**
   * The scenario of transfers whose externalId does not begin with the name of one.
   * @default 'success'
   */
  scenario?: TransferScenario | undefined;
  /**
   * Whether callbacks may go to hosts other than 127.0.0.0/8, ::1 and localhost.
   * @default false
   */
  allowOtherHosts?: boolean | undefined;
  /**
   * Whether the sandbox serves its console, a page in the browser, at `consoleUrl`.
   * @default true
   */
  console?: boolean | undefined;
  /**
   * Called with each attempt when it has ended, and not awaited. An error that it throws becomes a process warning.
   * @default none
   */
  onAttempt?: ((attempt: SandboxAttempt) => unknown) | undefined;
}

export type ResolvedSandboxOptions = ReturnType<typeof withDefaults>;

function withDefaults(options: TransferSandboxOptions) {
  return {
    port: options.port ?? 0,
    host: options.host ?? '127.0.0.1',
    apiKey: options.apiKey ?? 'sandbox-key',
    apiSecret: options.apiSecret ?? 'sandbox-secret',
    callbackUrl: options.callbackUrl,
    callbackHeaders: options.callbackHeaders ?? {},
    finalAfterMs: options.finalAfterMs ?? 1_000,
    speed: options.speed ?? 1,
    clock: options.clock,
    attemptTimeoutMs: options.attemptTimeoutMs ?? 10_000,
    // A store that outlives this run would take the ids of a fixed seed for ids of the run before.
    seed: options.seed ?? crypto.getRandomValues(new Uint32Array(1))[0] ?? 0,
    scenario: options.scenario ?? 'success',
    allowOtherHosts: options.allowOtherHosts ?? false,
    console: options.console ?? true,
    onAttempt: options.onAttempt,
  };
}

/** Checks the options and applies the defaults. Throws INVALID_ARGUMENT for the first invalid option. */
export function resolveSandboxOptions(options: TransferSandboxOptions): ResolvedSandboxOptions {
  onlyKnownOptions(options, Object.keys(withDefaults({})));
  const resolved = withDefaults(options);
  checkServer(resolved);
  checkTime(resolved, options.speed);
  checkCallbacks(resolved);
  return resolved;
}

function checkServer({ port, host, apiKey, apiSecret, seed, console }: ResolvedSandboxOptions): void {
  wholeNumber('port', port, { min: 0, max: 65_535, example: 0 });
  // The error of a lookup would show any other string, such as a URL with a password.
  if (typeof host !== 'string' || (isIP(host) === 0 && !/^[\w.-]+$/.test(host))) {
    throw invalidArgument('host', 'a host name or address', host, "host: '127.0.0.1'");
  }
  for (const [name, value] of Object.entries({ apiKey, apiSecret })) {
    // HTTP headers alter or reject other characters.
    if (typeof value !== 'string' || !/^[\x21-\x7e]+$/.test(value)) {
      throw invalidSecret(name, 'visible ASCII characters without spaces', value, `${name}: 'of-the-sandbox'`);
    }
  }
  wholeNumber('seed', seed, { min: 0, max: 2 ** 32 - 1, example: 1 });
  requireBoolean('console', console);
}

function checkTime(resolved: ResolvedSandboxOptions, givenSpeed: unknown): void {
  const { finalAfterMs, speed, clock, attemptTimeoutMs } = resolved;
  wholeNumber('finalAfterMs', finalAfterMs, { min: 0, example: 1_000 });
  requireSpeed(speed);
  if (clock !== undefined && (clock as unknown) !== 'manual') {
    throw invalidArgument('clock', '"manual" if given', clock, "clock: 'manual'");
  }
  if (clock !== undefined && givenSpeed !== undefined) {
    throw invalidArgument('speed', 'left out, since `clock` is "manual"', speed);
  }
  wholeNumber('attemptTimeoutMs', attemptTimeoutMs, { min: 1, example: 10_000 });
}

export function requireSpeed(speed: unknown): void {
  if (typeof speed === 'number' && speed > 0 && speed <= maxSpeed) return;
  throw invalidArgument('speed', `a number above 0, up to ${maxSpeed}`, speed, 'speed: 1');
}

function checkCallbacks(resolved: ResolvedSandboxOptions): void {
  const { callbackUrl, callbackHeaders, scenario, allowOtherHosts, onAttempt } = resolved;
  requireScenario(scenario);
  requireBoolean('allowOtherHosts', allowOtherHosts);
  if (onAttempt !== undefined) requireFunction('onAttempt', onAttempt, '(attempt) => console.log(attempt.hint)');
  requireAttemptHeaders(callbackHeaders, 'callbackHeaders');
  if (callbackUrl === undefined || typeof callbackUrl === 'function') return;
  const fault = callbackUrlFault(callbackUrl, allowOtherHosts);
  // The error must not show the URL: it may contain a token.
  const example = "callbackUrl: 'http://127.0.0.1:3000/callbacks/transfers'";
  if (fault !== undefined) throw invalidSecret('callbackUrl', fault, callbackUrl, example);
}

/** Returns what a callback URL should have been, or `undefined` if it is fine. `remedy` is what allows other hosts. */
export function callbackUrlFault(
  value: unknown,
  allowOtherHosts: boolean,
  remedy = '`allowOtherHosts` to be set',
): string | undefined {
  if (typeof value !== 'string' || !URL.canParse(value)) return 'a URL';
  const { protocol, hostname } = new URL(value);
  if (protocol !== 'http:' && protocol !== 'https:') return 'a URL of http or https';
  return isLoopback(hostname) || allowOtherHosts ? undefined : `a URL on this machine, or ${remedy}`;
}
