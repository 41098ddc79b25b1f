import { readFileSync } from 'node:fs';
import { attemptCallback, findReason, isAcknowledgement } from '../attempt/attempt.js';
import { requireAttemptHeaders } from '../attempt/headers.js';
import { parseJson } from '../../../src/lib/text.js';
import { explainResponse } from '../service/hints.js';
import { UsageError } from '../../../src/cli/arguments.js';
import { attemptRows } from './attempt-rows.js';
import { requireUrl, toHint, type Endpoint } from './endpoint-options.js';
import { jsonLine, messageOf, print } from '../../../src/cli/terminal.js';

/**
 * Sends the bytes of a file once, as an attempt of the service, and prints the response. Resolves with the exit code.
 */
export async function sendFile(
  path: string,
  { callbackUrl, callbackHeaders, allowOtherHosts }: Endpoint,
  json: boolean,
): Promise<number> {
  requireAttemptHeaders(callbackHeaders, 'callbackHeaders');
  const bytes = read(path);
  const body = bytes.toString();
  const externalId = findExternalId(body);
  const url = typeof callbackUrl === 'function' ? callbackUrl(externalId) : String(callbackUrl);
  requireUrl('what callbackUrl returns', url, allowOtherHosts);
  const sentAtMs = Date.now();
  const startedAt = performance.now();
  const response = await attemptCallback(url, bytes, { headers: callbackHeaders });
  const reason = findReason(response);
  const attempt = {
    // There is no transfer: it is printed as an attempt of one.
    transferId: '',
    externalId,
    number: 1,
    plannedAtMs: sentAtMs,
    sentAtMs,
    nextAtMs: undefined,
    durationMs: Math.round(performance.now() - startedAt),
    body,
    contentType: 'application/json',
    response,
    reason,
    hint: explainResponse(response, reason),
  };
  print(json ? jsonLine({ type: 'attempt', ...attempt }) : attemptRows(attempt, '   0 s') + toHint(response, reason));
  return isAcknowledgement(response) ? 0 : 1;
}

function read(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new UsageError(`Expected --data to name a file that can be read, got ${messageOf(error)}.`);
  }
}

/** A payload from a file may have none. `transferToken` refuses to make a token without it. */
function findExternalId(body: string): string {
  const { data } = (parseJson(body) ?? {}) as { data?: { externalId?: unknown } | null };
  return typeof data?.externalId === 'string' ? data.externalId : '';
}
