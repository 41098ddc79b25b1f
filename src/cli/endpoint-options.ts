import { isAcknowledgement, type AttemptResponse } from '../attempt/attempt.js';
import { requireHeaders } from '../attempt/headers.js';
import { transferToken, urlToken } from '../http/verifiers.js';
import { explainResponse } from '../sandbox/hints.js';
import { callbackUrlFault } from '../sandbox/options.js';
import { text, toSentence, UsageError } from './arguments.js';
import { width, wrap } from './terminal.js';

/** Options of the sandbox for callbacks to an endpoint with a verifier. */
export const callbackOptions = {
  header: { type: 'string', multiple: true },
  'transfer-token-env': text,
  'url-token-env': text,
  'allow-other-hosts': { type: 'boolean' },
} as const;

export const callbackHelp = `  --header 'NAME: VALUE'     Send this header with every callback (repeatable)
  --transfer-token-env NAME  Add the token of transferToken to the callback URL;
                             its secret is in this environment variable
  --url-token-env NAME       Add the token of urlToken to the callback URL; the
                             token is in this environment variable
  --allow-other-hosts        Let callbacks leave this machine`;

/** For an endpoint that responds 401. */
export const unauthorizedHint = `Hint: 401 means that a verifier refused the sender. Send what it expects with
--transfer-token-env, --url-token-env or --header; --help describes them.
`;

/**
 * Returns the lines about what a response means and what to do about it; none if it acknowledges the callback.
 * `reason` is that of `findReason`.
 */
export function toHint(response: AttemptResponse, reason: string | undefined): string {
  if (isAcknowledgement(response)) return '';
  if ('status' in response && response.status === 401) return unauthorizedHint;
  return `${wrap(`Hint: ${explainResponse(response, reason)}`, width()).join('\n')}\n`;
}

interface CallbackValues {
  readonly header?: string[] | undefined;
  readonly 'transfer-token-env'?: string | undefined;
  readonly 'url-token-env'?: string | undefined;
  readonly 'allow-other-hosts'?: boolean | undefined;
}

/** Returns the sandbox's options for callbacks to `url`, which was given as `urlFlag`. Throws UsageError. */
export function toCallbackOptions(urlFlag: string, url: string | undefined, values: CallbackValues) {
  const { header = [], 'allow-other-hosts': allowOtherHosts = false } = values;
  if (url !== undefined) requireUrl(urlFlag, callbackUrlFault(url, allowOtherHosts));
  return {
    allowOtherHosts,
    callbackHeaders: toHeaders('--header', header),
    callbackUrl: secureUrl(urlFlag, url, values),
  };
}

/** Options for the endpoint of a merchant in production. Its secrets are in the environment: other users see arguments. */
export const endpointOptions = {
  to: text,
  'to-env': text,
  'transfer-token-env': text,
  'header-env': { type: 'string', multiple: true },
} as const;

export const endpointHelp = `  --to-env NAME              The environment variable with the callback URL:
                             https, or on this machine
  --to URL                   The same, for a URL without a secret
  --transfer-token-env NAME  Add the token of transferToken to the URL; its
                             secret is in this environment variable
  --header-env 'NAME: VAR'   Send the header NAME with the value of the
                             environment variable VAR (repeatable)`;

interface EndpointValues {
  readonly to?: string | undefined;
  readonly 'to-env'?: string | undefined;
  readonly 'transfer-token-env'?: string | undefined;
  readonly 'header-env'?: string[] | undefined;
}

/** Returns how to reach the endpoint of a transfer's callback. Throws UsageError, or INVALID_ARGUMENT for a header. */
export function toEndpoint(values: EndpointValues) {
  const url = findUrl(values);
  const headers = toHeaders('--header-env', values['header-env'] ?? [], (name) => readVariable('--header-env', name));
  requireHeaders(headers, 'header');
  const secret = values['transfer-token-env'];
  if (secret === undefined) return { headers, urlFor: () => url };
  const tokens = checkedSecret('--transfer-token-env', secret, transferToken);
  return { headers, urlFor: (externalId: string) => tokens.urlFor(url, externalId) };
}

function findUrl({ to, 'to-env': variable }: EndpointValues): string {
  if ((to === undefined) === (variable === undefined)) {
    throw new UsageError('Expected --to-env NAME or --to URL, the callback endpoint.');
  }
  const flag = variable === undefined ? '--to' : '--to-env';
  const url = variable === undefined ? String(to) : readVariable(flag, variable);
  requireUrl(flag, callbackUrlFault(url, true));
  const { protocol, username, password, search } = new URL(url);
  const isSafe = protocol === 'https:' || callbackUrlFault(url, false) === undefined;
  requireUrl(flag, isSafe ? undefined : 'a URL of https, or one on this machine');
  if (variable === undefined && username + password + search !== '') {
    throw new UsageError('Expected --to to be without user, password and query. Use --to-env for a URL with a secret.');
  }
  return url;
}

function requireUrl(flag: string, fault: string | undefined): void {
  if (fault !== undefined) throw new UsageError(`Expected ${flag} to be ${fault}.`);
}

/** Parses `Name: value` lines, which were given as `flag`. Throws UsageError. */
function toHeaders(flag: string, lines: readonly string[], toValue = (value: string) => value) {
  const headers = new Map<string, string>();
  for (const line of lines) {
    const [, name = '', value = ''] = /^([^:]*):(.*)$/s.exec(line) ?? [];
    // The line is not shown: it may hold a secret.
    if (name === '') throw new UsageError(`Expected ${flag} to have a name and a colon.`);
    const key = name.toLowerCase();
    if (headers.has(key)) throw new UsageError(`Expected the same header once in ${flag}, got it twice.`);
    headers.set(key, toValue(value.trim()));
  }
  return Object.fromEntries(headers);
}

/** Reads an environment variable that was named by `flag`. Throws UsageError, which may not show a secret given by mistake. */
function readVariable(flag: string, name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new UsageError(`Expected ${flag} to name an environment variable that is set.`);
  return value;
}

/** Adds the token that the options name to `url`; a token of `transferToken` belongs to one externalId. */
function secureUrl(urlFlag: string, url: string | undefined, values: CallbackValues) {
  const { 'transfer-token-env': transferEnv, 'url-token-env': urlEnv } = values;
  if (transferEnv === undefined && urlEnv === undefined) return url;

  const given = transferEnv === undefined ? '--url-token-env' : '--transfer-token-env';
  if (transferEnv !== undefined && urlEnv !== undefined) {
    throw new UsageError('Expected --transfer-token-env or --url-token-env, not both: they use the same path segment.');
  }
  if (url === undefined) throw new UsageError(`Expected ${urlFlag} beside ${given}.`);
  if (transferEnv !== undefined) {
    const tokens = checkedSecret(given, transferEnv, transferToken);
    return (externalId: string) => tokens.urlFor(url, externalId);
  }
  checkedSecret(given, String(urlEnv), urlToken);
  const secured = new URL(url);
  secured.pathname = `${secured.pathname.replace(/\/$/, '')}/${readVariable(given, String(urlEnv))}`;
  return secured.href;
}

/** Makes a verifier with the secret in an environment variable; the secret is not shown. */
function checkedSecret<T>(flag: string, name: string, verifierWith: (secret: string) => T): T {
  const secret = readVariable(flag, name);
  try {
    return verifierWith(secret);
  } catch (error) {
    throw new UsageError(toSentence(error).replace('`secret`', name));
  }
}
