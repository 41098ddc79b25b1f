import { expect, test } from 'vitest';
import type { TransferCallbackOutcome } from 'transfer-callbacks';
import { outcomes } from '../../src/core/outcomes.js';
import { toResponse } from '../../src/http/responses.js';

/** A handler has succeeded. */
const handled = ['processed', 'duplicate'];
/** The exception: the definition of a service declares that no handler is needed. See the tests of `ignored`. */
const declared = ['ignored'];
const acknowledged = [...handled, ...declared];

test('of all outcomes and faults only processed, duplicate and the declared ignored make a 2xx', () => {
  const details = { source: 'http', durationMs: 1, issues: [], retryAfterMs: 200, status: 200, statusCode: 200 };
  for (const [outcome, row] of Object.entries(outcomes)) {
    expect([outcome, row.status < 300]).toEqual([outcome, acknowledged.includes(outcome)]);
    for (const error of [undefined, new Error('no'), { status: 200 }]) {
      for (const fault of [undefined, { status: 413, message: 'too long' } as const]) {
        const { status } = toResponse({ ...details, outcome, error } as unknown as TransferCallbackOutcome, fault);
        expect([outcome, status < 300]).toEqual([outcome, acknowledged.includes(outcome)]);
      }
    }
  }
});
