import { readFileSync } from 'node:fs';
import { attemptCallback, findReason, isAcknowledgement, toContentType } from '../attempt/attempt.js';
import { requireAttemptHeaders, type AttemptHeaders } from '../attempt/headers.js';
import { addSignature, Signer } from '../attempt/signer.js';
import { parseJson } from '../../../src/lib/text.js';
import { explainResponse } from '../service/hints.js';
import { UsageError } from '../../../src/cli/arguments.js';
import { attemptRows } from './attempt-rows.js';
import type { Definition } from '../services/load-by-name.js';
import { describeBody, parsePayload } from './check/payload.js';
import { toHint, toUrl, type Endpoint } from './endpoint-options.js';
import { signatureMissing } from './trigger-service.js';
import { jsonLine, messageOf, print } from '../../../src/cli/terminal.js';

/**
 * Sends the bytes of a file once, as an attempt of the service, and prints the response. Resolves with the exit code.
 * Without a definition the service is the documented one.
 */
export async function sendFile(
  path: string,
  endpoint: Endpoint,
  { json, definition }: { readonly json: boolean; readonly definition: Definition | undefined },
): Promise<number> {
  requireAttemptHeaders(endpoint.callbackHeaders, 'callbackHeaders');
  const bytes = read(path);
  const body = bytes.toString();
  const { externalId, headers, contentType, describe, isSigned } =
    definition === undefined ? readDocumented(body, endpoint) : readDefined(definition, body, endpoint);
  const url = toUrl(endpoint, externalId);
  const sentAtMs = Date.now();
  const startedAt = performance.now();
  const response = await attemptCallback(url, bytes, { headers, contentType });
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
    contentType,
    response,
    reason,
    hint: explainResponse(response, reason),
  };
  const rows = attemptRows(attempt, '   0 s', describe);
  print(json ? jsonLine({ type: 'attempt', ...attempt }) : rows + toHint(response, reason, isSigned));
  return isAcknowledgement(response) ? 0 : 1;
}

function read(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new UsageError(`Expected --data to name a file that can be read, got ${messageOf(error)}.`);
  }
}

/** What the bytes of a file are sent with. */
interface Sending {
  /** Empty if the payload has none. `transferToken` refuses to make a token without it. */
  readonly externalId: string;
  readonly headers: AttemptHeaders;
  readonly contentType: string;
  readonly describe?: (body: string) => string | undefined;
  readonly isSigned?: boolean;
}

function readDocumented(body: string, { callbackHeaders: headers }: Endpoint): Sending {
  const { data } = (parseJson(body) ?? {}) as { data?: { externalId?: unknown } | null };
  const externalId = typeof data?.externalId === 'string' ? data.externalId : '';
  return { externalId, headers, contentType: toContentType(false) };
}

function readDefined({ service, signWith }: Definition, body: string, { callbackHeaders }: Endpoint): Sending {
  const signer = new Signer(service.verify, body, signWith);
  if (signer.isMissing(callbackHeaders)) throw signatureMissing();
  const payload = parsePayload(body);
  const reading = payload && service.readCallback(payload.value);
  return {
    externalId: (reading?.kind === 'callback' ? reading.fields.externalId : undefined) ?? '',
    headers: addSignature(callbackHeaders, (bytes) => signer.sign(bytes)),
    contentType: toContentType(payload?.isForm === true),
    describe: (text) => describeBody(service, text),
    isSigned: signer.canSign,
  };
}
