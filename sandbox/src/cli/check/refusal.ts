import { findReason, type AttemptResponse } from '../../attempt/attempt.js';
import { explainResponse, findOutcome } from '../../service/hints.js';
import { configFile } from '../../../../src/cli/config-file.js';
import { signedAdvice } from '../endpoint-options.js';
import { join } from './trial.js';

/** Why nothing could be seen: no attempt of the first callback was acknowledged. */
export interface Refusal {
  /** What happened to the first callback. */
  readonly what: 'was refused' | 'got no response';
  /** What the last response means, and which option may be missing, in sentences. */
  readonly advice: string;
}

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
}

/** Explains the last response to the first callback. */
export function explainRefusal(response: AttemptResponse, circumstances: Circumstances): Refusal {
  const what = 'status' in response ? 'was refused' : 'got no response';
  return { what, advice: advise(response, circumstances) };
}

function advise(response: AttemptResponse, circumstances: Circumstances): string {
  const { keyRefusal, serviceUrl, isSigned } = circumstances;
  if (keyRefusal !== undefined) return explainKey(keyRefusal, String(serviceUrl));
  const status = 'status' in response ? response.status : undefined;
  if (status === 401 || status === 403) {
    const advice = isSigned
      ? signedAdvice
      : `give the token in --to, --header, or a ${configFile} whose callbackHeaders(body) signs.`;
    return `${status} means that the sender was not believed: ${advice}`;
  }
  const hint = explainForCheck(response, circumstances);
  return status === undefined ? hint : [hint, ...findMissing(circumstances)].join(' ');
}

/** Names the options without which some endpoints refuse every callback. */
function findMissing({ port, prepare, serviceUrl }: Circumstances): string[] {
  return [
    ...(port === undefined && serviceUrl !== undefined
      ? ['If your app asks the service, give --port and let it ask there.']
      : []),
    ...(prepare === undefined ? ['If your app must know the payout, give --prepare.'] : []),
  ];
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
