import { requireHeaders } from '../delivery/headers.js';
import { transferToken } from '../http/verify.js';
import { callbackUrlFault } from '../sandbox/options.js';
import { text, UsageError } from './arguments.js';
import { checkedSecret, readVariable, requireUrl, toHeaders } from './secured.js';

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
