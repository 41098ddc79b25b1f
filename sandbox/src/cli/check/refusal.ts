import { findReason, type AttemptResponse } from '../../attempt/attempt.js';
import { explainResponse, findOutcome } from '../../service/hints.js';
import { configFile } from '../../../../src/cli/config-file.js';
import { signedAdvice } from '../endpoint-options.js';
import { join } from './trial.js';

/** What may be why the endpoint has acknowledged nothing. */
export interface Circumstances {
  readonly port: string | undefined;
  readonly prepare: string | undefined;
  /** Where the service of this check listens; `undefined` if it cannot be asked. */
  readonly serviceUrl: string | undefined;
  /** Whether the callback had a signature. */
  readonly isSigned: boolean;
  /** Why that service has refused the key of the app; `undefined` if it has not. */
  readonly keyRefusal: string | undefined;
  /** Why the row was cut short; `undefined` if there were responses. */
  readonly silence: string | undefined;
}

/** Returns which option is missing, or what else the last response to the first callback means. */
export function explainRefusal(response: AttemptResponse, circumstances: Circumstances): string {
  const { keyRefusal, silence, serviceUrl, isSigned } = circumstances;
  const hint = explainForCheck(response, circumstances);
  if (silence !== undefined) return `The first callback was sent twice and got no response. ${hint}`;
  const what = 'status' in response ? 'was refused' : 'got no response';
  const start = `The first callback ${what}, so that nothing could be seen.`;
  if (keyRefusal !== undefined) return `${start} ${explainKey(keyRefusal, String(serviceUrl))}`;
  const status = 'status' in response ? response.status : undefined;
  if (status === 401 || status === 403) {
    const advice = isSigned
      ? signedAdvice
      : `give the token in --to, --header, or a ${configFile} whose callbackHeaders(body) signs.`;
    return `${start} ${status} means that the sender was not believed: ${advice}`;
  }
  const missing = findMissing(circumstances);
  if (status === undefined || missing === undefined) return `${start} ${hint}`;
  return `${start} It got ${status}: ${missing}. ${hint}`;
}

function findMissing({ port, prepare, serviceUrl }: Circumstances): string | undefined {
  const missing = [
    ...(port === undefined && serviceUrl !== undefined
      ? ['if your app asks the service, give --port and let it ask there']
      : []),
    ...(prepare === undefined ? ['if it must know its payout, give --prepare'] : []),
  ];
  return missing.join('; ') || undefined;
}

/** The hint of `trigger` to an app that asks the service is to run one: `check` does. */
function explainForCheck(response: AttemptResponse, { port, serviceUrl }: Circumstances): string {
  const reason = findReason(response);
  if (findOutcome(response, reason) !== 'unconfirmed') return explainResponse(response, reason);
  const asks = 'Your app asks the service (`confirm`), which has not confirmed it.';
  if (serviceUrl === undefined) return `${asks} This check answers no query of it: run your app without.`;
  return join(asks, port === undefined ? undefined : `Let its \`baseUrl\` be ${serviceUrl}.`) ?? asks;
}

/** Names the variables, and no key: it may be that of production. */
export function explainKey(reason: string, serviceUrl: string): string {
  return (
    `Your app asked the service at ${serviceUrl}, which refused its key (${reason}). Set SANDBOX_API_KEY and ` +
    'SANDBOX_API_SECRET to the key and the secret that your app sends.'
  );
}
