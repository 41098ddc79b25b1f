import { requireHeaders } from '../delivery/headers.js';
import { transferToken, urlToken } from '../http/verify.js';
import { callbackUrlFault } from '../sandbox/options.js';
import { text, UsageError } from './arguments.js';

/** Options for endpoints that do not trust everyone. */
export const endpointOptions = {
  header: { type: 'string', multiple: true },
  'transfer-token-env': text,
  'url-token-env': text,
} as const;

/** The same for the callbacks of a sandbox. */
export const securedOptions = { ...endpointOptions, 'allow-other-hosts': { type: 'boolean' } } as const;

export const endpointHelp = `  --header 'NAME: VALUE'     Send this header with every callback (repeatable)
  --transfer-token-env NAME  Add the token of transferToken to the callback URL;
                             its secret is in this environment variable
  --url-token-env NAME       Add the token of urlToken to the callback URL; the
                             token is in this environment variable`;

export const securedHelp = `${endpointHelp}
  --allow-other-hosts        Let callbacks leave this machine`;

/** For an endpoint that responds 401. */
export const unauthorizedHint = `Hint: 401 means that a verifier refused the sender. Send what it expects with
--transfer-token-env, --url-token-env or --header; --help describes them.
`;

interface EndpointValues {
  readonly header?: string[] | undefined;
  readonly 'transfer-token-env'?: string | undefined;
  readonly 'url-token-env'?: string | undefined;
}

interface SecuredValues extends EndpointValues {
  readonly 'allow-other-hosts'?: boolean | undefined;
}

/** Returns the sandbox's options for callbacks to `url`, which was given as `urlFlag`. Throws UsageError. */
export function toCallbackOptions(urlFlag: string, url: string | undefined, values: SecuredValues) {
  const { header = [], 'allow-other-hosts': allowOtherHosts = false } = values;
  if (url !== undefined) requireUrl(urlFlag, callbackUrlFault(url, allowOtherHosts));
  return {
    allowOtherHosts,
    callbackHeaders: toHeaders(header),
    callbackUrl: secureUrl(urlFlag, url, values),
  };
}

/**
 * Returns how to reach the endpoint of a transfer's callback at `url`, over https or on this machine. Throws UsageError,
 * or INVALID_ARGUMENT for a header.
 */
export function toEndpoint(urlFlag: string, url: string, values: EndpointValues) {
  const isSafe = url.startsWith('https:') || callbackUrlFault(url, false) === undefined;
  requireUrl(urlFlag, callbackUrlFault(url, true) ?? (isSafe ? undefined : 'a URL of https, or one on this machine'));
  const headers = toHeaders(values.header ?? []);
  requireHeaders(headers, 'header');
  const secured = secureUrl(urlFlag, url, values) ?? url;
  return { headers, urlFor: typeof secured === 'string' ? () => secured : secured };
}

function requireUrl(flag: string, fault: string | undefined): void {
  if (fault !== undefined) throw new UsageError(`Expected ${flag} to be ${fault}.`);
}

function toHeaders(lines: readonly string[]): Record<string, string> {
  const headers = new Map<string, string>();
  for (const line of lines) {
    const [, name = '', value = ''] = /^([^:]*):(.*)$/s.exec(line) ?? [];
    // The line is not shown: it may hold a secret.
    if (name === '') throw new UsageError("Expected --header to be 'Name: value'.");
    const key = name.toLowerCase();
    if (headers.has(key)) throw new UsageError(`Expected the header ${name} once, got it twice.`);
    headers.set(key, value.trim());
  }
  return Object.fromEntries(headers);
}

/** Adds the token that the options name to `url`; a token of `transferToken` belongs to one externalId. */
function secureUrl(urlFlag: string, url: string | undefined, values: EndpointValues) {
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
  secured.pathname = `${secured.pathname.replace(/\/$/, '')}/${String(process.env[String(urlEnv)])}`;
  return secured.href;
}

/** Makes a verifier with the secret in an environment variable; the secret is not shown. */
function checkedSecret<T>(option: string, name: string, verifierWith: (secret: string) => T): T {
  const secret = process.env[name];
  if (secret === undefined) throw new UsageError(`Expected ${option} to name an environment variable, got ${name}.`);
  try {
    return verifierWith(secret);
  } catch (error) {
    throw new UsageError((error as Error).message.replace('`secret`', name));
  }
}
