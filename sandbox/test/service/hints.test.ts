import { expect, test } from 'vitest';
import type { TransferCallbackOutcome } from '../../../src/core/outcomes.js';
import { toResponse } from '../../../src/http/responses.js';
import { findReason } from '../../src/attempt/attempt.js';
import { explainResponse } from '../../src/service/hints.js';
import { play } from './support.js';

/** Returns the reason in the response of a receiver. */
function reasonOf(outcome: object): string | undefined {
  return findReason(toResponse(outcome as TransferCallbackOutcome));
}

test.each<[string, Parameters<typeof explainResponse>]>([
  ['Your handler ran and succeeded.', [{ status: 200, body: '' }, 'processed']],
  ['Handled before: your handler did not run again.', [{ status: 200, body: '' }, 'duplicate']],
  ['Acknowledged, as any 2xx is', [{ status: 202, body: 'OK' }, undefined]],
  ['Redirects are not followed', [{ status: 302, body: '' }, undefined]],
  ['is not a documented callback', [{ status: 400, body: '' }, 'processed']],
  ['The sender was refused', [{ status: 401, body: '' }, undefined]],
  ['Your handler threw', [{ status: 500, body: '' }, reasonOf({ outcome: 'handler_failed' })]],
  [
    'Your app read the body before the router',
    [{ status: 500, body: '' }, reasonOf({ outcome: 'invalid', error: new Error() })],
  ],
  ['Your app failed, or something before it', [{ status: 500, body: '' }, 'A sentence of another version.']],
  ['Your app failed, or something before it', [{ status: 500, body: '' }, undefined]],
  ['In production this raises the alert TransferConflict', [{ status: 422, body: '' }, undefined]],
  ['Only a 2xx acknowledges', [{ status: 418, body: '' }, undefined]],
  [
    'It asked for a pause of 7 s; the service keeps its own.',
    [{ status: 503, body: '', headers: { 'retry-after': '7' } }, undefined],
  ],
  ['The scenario kept it from your app.', [{ error: 'lost' }, undefined]],
  ['The scenario lost the response', [{ error: 'response lost' }, undefined]],
  ['Nothing listens there', [{ error: 'connect ECONNREFUSED 127.0.0.1:1' }, undefined]],
  ['did not respond in time', [{ error: 'no response within 10000 ms' }, undefined]],
  ['The connection ended before the response did', [{ error: 'socket hang up' }, undefined]],
])('the hint "%s" explains its response (%#)', (sentence, [response, reason]) => {
  expect(explainResponse(response, reason)).toContain(sentence);
});

test('an attempt has a hint', async () => {
  const { sandbox } = await play('success', [404]);
  await sandbox.advance(1_000);
  expect(sandbox.attempts[0]?.hint).toContain('Nothing is mounted at this path.');
});
