import { isIPv4, isIPv6 } from 'node:net';
import { invalidOption, invalidSecret, onlyKnownOptions, wholeNumber } from '../core/errors.js';
import type { SandboxAttempt } from './deliveries.js';
import { isScenario, transferScenarios, type TransferScenario } from './scenarios.js';

export interface TransferSandboxOptions {
  /** Where to listen; 0 for any free port. Default 0. */
  port?: number | undefined;
  /** The address to listen at. Default `127.0.0.1`: nothing outside this machine reaches the sandbox. */
  host?: string | undefined;
  /** The merchant's key. Default `sandbox-key`; the unusable keys of `keys` are made from it. */
  apiKey?: string | undefined;
  /** The secret that belongs to `apiKey`. Default `sandbox-secret`. */
  apiSecret?: string | undefined;
  /**
   * Where the callbacks of transfers go that are created without a `callbackUrl` of their own. Default none: such a
   * transfer has no callback, and only a query tells its outcome.
   */
  callbackUrl?: string | undefined;
  /** From the creation of a transfer to its final status, in milliseconds of sandbox time. Default 1 000. A guess. */
  finalAfterMs?: number | undefined;
  /** How much faster than real time sandbox time runs, from real time on: 30 s take 30 ms at 1 000. Default 1. */
  speed?: number | undefined;
  /** `manual`: sandbox time starts at 2026-01-15T10:30:00.000Z and moves by `advance(ms)` alone. Excludes `speed`. */
  clock?: 'manual' | undefined;
  /** How long one attempt waits for its answer, in milliseconds of real time. Default 10 000. A guess. */
  attemptTimeoutMs?: number | undefined;
  /**
   * What all ids are made from. Default 1. Two sandboxes with one seed give the same ids in the same order: vary it
   * when the receiver's store outlives the sandbox, or it takes new transfers for old ones.
   */
  seed?: number | undefined;
  /** For transfers whose externalId does not begin with the name of a scenario. Default `success`. */
  scenario?: TransferScenario | undefined;
  /** Whether callbacks may go to hosts other than 127.0.0.0/8, ::1 and localhost. Default false. */
  allowOtherHosts?: boolean | undefined;
  /** Told of each attempt when it has been answered. Not awaited; what it throws becomes a warning of the process. */
  onAttempt?: ((attempt: SandboxAttempt) => unknown) | undefined;
}

export type ResolvedSandboxOptions = ReturnType<typeof resolveSandboxOptions>;

/** Beyond it a retry's pause would be shorter than a timer can measure. */
const maxSpeed = 1_000_000;

const optionNames: readonly (keyof TransferSandboxOptions)[] = [
  'port',
  'host',
  'apiKey',
  'apiSecret',
  'callbackUrl',
  'finalAfterMs',
  'speed',
  'clock',
  'attemptTimeoutMs',
  'seed',
  'scenario',
  'allowOtherHosts',
  'onAttempt',
];

/** Checks the options and fills in the defaults; throws INVALID_OPTION at the first that does not fit. */
export function resolveSandboxOptions(options: TransferSandboxOptions) {
  onlyKnownOptions(options, optionNames);
  const {
    port = 0,
    host = '127.0.0.1',
    apiKey = 'sandbox-key',
    apiSecret = 'sandbox-secret',
    callbackUrl,
    finalAfterMs = 1_000,
    speed = 1,
    clock,
    attemptTimeoutMs = 10_000,
    seed = 1,
    scenario = 'success',
    allowOtherHosts = false,
    onAttempt,
  } = options;
  wholeNumber('port', port, 0, 65_535);
  if (typeof host !== 'string' || host === '') throw invalidOption('host', 'a host name or address', host);
  for (const [name, value] of Object.entries({ apiKey, apiSecret })) {
    // What else a header carries, it carries changed or not at all.
    if (typeof value !== 'string' || !/^[\x21-\x7e]+$/.test(value)) {
      throw invalidSecret(name, 'visible ASCII characters without spaces', value);
    }
  }
  wholeNumber('finalAfterMs', finalAfterMs, 0);
  if (typeof speed !== 'number' || !(speed > 0 && speed <= maxSpeed)) {
    throw invalidOption('speed', `a number above 0, up to ${maxSpeed}`, speed);
  }
  if (clock !== undefined && (clock as unknown) !== 'manual') throw invalidOption('clock', '"manual" if given', clock);
  if (clock !== undefined && options.speed !== undefined) {
    throw invalidOption('speed', 'left out, since `clock` is "manual"', speed);
  }
  wholeNumber('attemptTimeoutMs', attemptTimeoutMs, 1);
  wholeNumber('seed', seed, 0, 2 ** 32 - 1);
  requireScenario('scenario', scenario);
  if (typeof allowOtherHosts !== 'boolean') throw invalidOption('allowOtherHosts', 'true or false', allowOtherHosts);
  if (onAttempt !== undefined && typeof onAttempt !== 'function') {
    throw invalidOption('onAttempt', 'a function', onAttempt);
  }
  const fault = callbackUrl === undefined ? undefined : callbackUrlFault(callbackUrl, allowOtherHosts);
  // Not shown: it may hold a token.
  if (fault !== undefined) throw invalidSecret('callbackUrl', fault, callbackUrl);
  return {
    port,
    host,
    apiKey,
    apiSecret,
    callbackUrl,
    finalAfterMs,
    speed,
    clock,
    attemptTimeoutMs,
    seed,
    scenario,
    allowOtherHosts,
    onAttempt,
  };
}

export function requireScenario(option: string, value: unknown): asserts value is TransferScenario {
  if (isScenario(value)) return;
  throw invalidOption(option, `one of ${transferScenarios.map(({ name }) => name).join(', ')}`, value);
}

/** What a callback address should have been, or `undefined` if it will do. */
export function callbackUrlFault(value: unknown, allowOtherHosts: boolean): string | undefined {
  if (typeof value !== 'string' || !URL.canParse(value)) return 'a URL';
  const { protocol, hostname } = new URL(value);
  if (protocol !== 'http:' && protocol !== 'https:') return 'a URL of http or https';
  // By its parts, not its beginning: 127.example.com is anybody's host.
  const loopback =
    hostname === 'localhost' || hostname === '[::1]' || (isIPv4(hostname) && hostname.startsWith('127.'));
  return loopback || allowOtherHosts ? undefined : 'a URL on this machine, or `allowOtherHosts` to be set';
}

/** How this machine reaches a server that listens at `host`: 0.0.0.0 and :: are no addresses to connect to. */
export function baseUrlAt(host: string, port: number): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${isIPv6(reachable) ? `[${reachable}]` : reachable}:${port}`;
}
