import { isAcknowledgement, type AttemptResponse } from '../attempt/attempt.js';
import { requireAttemptHeaders, type AttemptHeaders } from '../attempt/headers.js';
import { explainResponse } from '../service/hints.js';
import { callbackUrlFault } from '../service/options.js';
import { transferScenarios } from '../service/scenarios.js';
import { describeInvalid, flag, text, UsageError } from '../../../src/cli/arguments.js';
import { configFile, loadExports } from '../../../src/cli/config-file.js';
import type { TransferCallbackError } from '../../../src/lib/errors.js';
import { width, wrap } from '../../../src/cli/terminal.js';
import { secretVariable } from '../services/load-by-name.js';

/** Options for the callbacks to an endpoint. */
export const callbackOptions = {
  config: text,
  header: { type: 'string', multiple: true },
  'allow-other-hosts': flag,
} as const;

export const callbackHelp = `  --header 'NAME: VALUE'     Send this header with every callback (repeatable)
  --allow-other-hosts        Let callbacks go to other machines, which book what
                             they say`;

/** For the help of a command. */
export const scenarioList = transferScenarios
  .map(({ name, description }) => `  ${name.padEnd(18)} ${description}`)
  .join('\n');

/** For an endpoint that responds 401. */
export const unauthorizedHint = `Hint: 401 means that a verifier refused the sender. Give a URL that ends in the
token, or --header, or export callbackUrl or callbackHeaders from
${configFile}.
`;

/** For an endpoint that does not believe a signed callback. */
export const signedAdvice =
  'does your endpoint verify with the same secret, or with its public key? This command signs with ' +
  `${secretVariable}, or with the secret of your definition.`;

/**
 * Returns the lines about what a response means and what to do about it; none if it acknowledges the callback.
 * `reason` is the result of `findReason`. `isSigned` is true for the callback of a service that signs.
 */
export function toHint(response: AttemptResponse, reason: string | undefined, isSigned = false): string {
  if (isAcknowledgement(response)) return '';
  const isRefused = 'status' in response && response.status === 401;
  if (isRefused && !isSigned) return unauthorizedHint;
  const hint = isRefused
    ? `401 means that the sender was not believed: ${signedAdvice}`
    : explainResponse(response, reason);
  return `${wrap(`Hint: ${hint}`, width()).join('\n')}\n`;
}

interface CallbackValues {
  readonly config?: string | undefined;
  readonly header?: string[] | undefined;
  readonly 'allow-other-hosts'?: boolean | undefined;
}

/** Where no callback endpoint is given. */
export const missingUrl =
  'Expected --to URL, the callback endpoint, such as --to http://localhost:3000/callbacks, or a callbackUrl exported ' +
  `from ${configFile}.`;

/** Where callbacks go, and with what: options of the sandbox. */
export interface Endpoint {
  readonly callbackUrl: string | ((externalId: string) => string) | undefined;
  readonly callbackHeaders: AttemptHeaders;
  readonly allowOtherHosts: boolean;
}

/** Returns the endpoint at `url`, the value of `urlFlag`, or the one in a configuration file. Throws UsageError. */
export async function findEndpoint(
  urlFlag: string,
  url: string | undefined,
  file: string | undefined,
  { config, header = [], 'allow-other-hosts': allowOtherHosts = false }: CallbackValues,
): Promise<Endpoint> {
  const headers = toHeaders(header);
  if (url !== undefined) {
    if (config !== undefined) throw new UsageError(`Expected ${urlFlag} or --config, not both.`);
    requireUrl(urlFlag, url, allowOtherHosts);
    return { callbackUrl: url, callbackHeaders: headers, allowOtherHosts };
  }
  const { callbackUrl, callbackHeaders = {} } = file === undefined ? {} : await loadEndpoint(file);
  if (typeof callbackUrl === 'string') requireUrl(`the callbackUrl of ${String(file)}`, callbackUrl, allowOtherHosts);
  const own = callbackHeaders;
  const all = typeof own === 'function' ? (body: Buffer) => merge(own(body), headers) : merge(own, headers);
  return { callbackUrl, callbackHeaders: all, allowOtherHosts };
}

/** Returns all headers. A header of the command line replaces another one of the same name. */
function merge(own: Readonly<Record<string, string>>, given: Readonly<Record<string, string>>): Record<string, string> {
  const lower = Object.entries(own).map(([name, value]) => [name.toLowerCase(), value] as const);
  return { ...Object.fromEntries(lower), ...given };
}

/** Loads the endpoint of a configuration file. Throws UsageError. */
async function loadEndpoint(file: string): Promise<Partial<Endpoint>> {
  const { callbackUrl, callbackHeaders } = await loadExports(file);
  if (callbackUrl !== undefined && typeof callbackUrl !== 'string' && typeof callbackUrl !== 'function') {
    throw new UsageError(`Expected the callbackUrl of ${file} to be a URL, or a function that returns one.`);
  }
  try {
    if (callbackHeaders !== undefined) requireAttemptHeaders(callbackHeaders, 'callbackHeaders');
  } catch (error) {
    const invalid = error as TransferCallbackError;
    throw new UsageError(describeInvalid(`the ${String(invalid.option)} of ${file}`, invalid));
  }
  return { callbackUrl, callbackHeaders } as Partial<Endpoint>;
}

/** Throws UsageError if callbacks may not go to `url`. The URL is not shown: it may hold a token. */
export function requireUrl(name: string, url: string, allowOtherHosts: boolean): void {
  const fault = callbackUrlFault(url, allowOtherHosts, '--allow-other-hosts');
  if (fault === undefined) return;
  const advice = /^[\w.-]+:\d/.test(url) ? ': begin it with http://' : '';
  throw new UsageError(`Expected ${name} to be ${fault}${advice}.`);
}

/** Returns where the callback of a transfer goes. Throws UsageError if it may not. */
export function toUrl({ callbackUrl, allowOtherHosts }: Endpoint, externalId: string): string {
  const url = typeof callbackUrl === 'function' ? callbackUrl(externalId) : String(callbackUrl);
  requireUrl('what callbackUrl returns', url, allowOtherHosts);
  return url;
}

/** Parses `Name: value` lines. Throws UsageError. */
function toHeaders(lines: readonly string[]): Record<string, string> {
  const headers = new Map<string, string>();
  for (const line of lines) {
    const [, name = '', value = ''] = /^([^:]*):(.*)$/s.exec(line) ?? [];
    // The line is not shown: it may hold a secret.
    if (name === '') throw new UsageError('Expected --header to have a name and a colon.');
    const key = name.toLowerCase();
    if (headers.has(key)) throw new UsageError('Expected the same header once in --header, got it twice.');
    headers.set(key, value.trim());
  }
  return Object.fromEntries(headers);
}
