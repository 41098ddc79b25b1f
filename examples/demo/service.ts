import { setTimeout } from 'node:timers/promises';
import type { TransferCallback } from 'transfer-callbacks';

/** What became of one attempt: the status of the answer, or none. */
export type Attempt = number | 'no answer';

/** The service's pauses of 30 s, 60 s and 120 s, a thousand times as fast. The factor of two is not documented. */
const pausesMs = [30, 60, 120];

/**
 * Sends a callback as the service does (service §6): the same bytes on every attempt, 4 attempts in all, exponential
 * backoff, until one is answered with 2xx. A string is sent as it stands.
 */
export async function sendCallback(url: string, callback: TransferCallback | string): Promise<Attempt[]> {
  const body = typeof callback === 'string' ? callback : JSON.stringify(callback);
  const attempts = [await attempt(url, body)];
  for (const pauseMs of pausesMs) {
    if (isAcknowledged(attempts.at(-1))) break;
    await setTimeout(pauseMs);
    attempts.push(await attempt(url, body));
  }
  return attempts;
}

async function attempt(url: string, body: string): Promise<Attempt> {
  try {
    const answer = await fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
    await answer.arrayBuffer();
    return answer.status;
  } catch {
    return 'no answer';
  }
}

function isAcknowledged(attempt: Attempt | undefined): boolean {
  return typeof attempt === 'number' && attempt >= 200 && attempt < 300;
}
