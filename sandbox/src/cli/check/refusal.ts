import { findReason, type AttemptResponse } from '../../attempt/attempt.js';
import { explainResponse, findOutcome } from '../../service/hints.js';
import { configFile } from '../../../../src/cli/config-file.js';
import { signedAdvice } from '../endpoint-options.js';
import { join, toSaid } from './judge.js';

/** What may be why the endpoint has acknowledged nothing. */
interface Circumstances {
  readonly port: string | undefined;
  readonly prepare: string | undefined;
  /** Where the service of this check listens; `undefined` if it cannot be asked. */
  readonly serviceUrl: string | undefined;
  /** Whether the callback had a signature. */
  readonly isSigned: boolean;
}

/** Returns what the last response to the first callback means, and which option may be missing, in sentences. */
export function explainRefusal(response: AttemptResponse, circumstances: Circumstances): string {
  const status = 'status' in response ? response.status : undefined;
  if (status === 401 || status === 403) {
    const advice = circumstances.isSigned
      ? signedAdvice
      : `give the token in --to, --header, or a ${configFile} whose callbackHeaders(body) signs.`;
    return join(`${status} means that the sender was not believed: ${advice}`, toSaid(response));
  }
  const hint = explainForCheck(response, circumstances);
  const isOfBody = status !== undefined && status >= 400 && ![405, 413, 415].includes(status);
  return join(hint, ...(isOfBody ? findMissing(circumstances) : []), toSaid(response));
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
  const outcome = findOutcome(response, reason);
  if (outcome === undefined) return explainForeign(response);
  if (outcome !== 'unconfirmed') return explainResponse(response, reason);
  const asks = 'Your app asks the service (`confirm`), which has not confirmed it.';
  if (serviceUrl === undefined) return `${asks} This check answers no query of it: run your app without.`;
  return join(asks, port === undefined ? undefined : `Let its \`baseUrl\` be ${serviceUrl}.`);
}

/** Explains what an endpoint of any make responded. */
function explainForeign(response: AttemptResponse): string {
  if ('error' in response) {
    const isPlain = /wrong version number|EPROTO|packet length/i.test(response.error);
    return isPlain ? 'The port does not speak TLS: write http:// in --to.' : explainResponse(response, undefined);
  }
  const { status } = response;
  const own = byStatus[status] ?? byStatus[Math.floor(status / 100)];
  return own ?? `The endpoint refused it with ${status}.`;
}

/** By status, or by its first digit. */
const byStatus: Readonly<Record<number, string>> = {
  3: 'Redirects are not followed. Give the final address in --to.',
  404: 'The endpoint found nothing at this path, or no payout of this id.',
  405: 'The endpoint does not take this method: does the service send PUT (--method PUT)?',
  415: 'The endpoint does not take this Content-Type.',
  5: 'Your app failed, or something before it. See its log.',
};
