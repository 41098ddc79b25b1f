import { describe, expect, test } from 'vitest';
import type { TransferCallbackOutcome } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { outcomes } from '../../src/core/outcomes.js';
import { toResponse } from '../../src/http/responses.js';
import { httpServers } from '../support/servers/http-servers.js';
import { errorBody, post } from '../support/helpers/post.js';
import { recordingOptions } from '../support/helpers/recording-options.js';
import { start } from './support.js';
import { listen } from '../support/helpers/listen.js';

const acknowledged = ['processed', 'duplicate'];

test('of all outcomes and faults only processed and duplicate make a 2xx', () => {
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

const failed = errorBody(500, 'The callback could not be handled.');

/** Tries to make a success of an outcome; what that throws is the trick's own affair. */
const tricks: [string, (outcome: TransferCallbackOutcome) => unknown][] = [
  ['assigns to it', (outcome) => Object.assign(outcome, { outcome: 'processed', overlapped: false, error: undefined })],
  ['changes the case of its name', (outcome) => Object.assign(outcome, { outcome: outcome.outcome.toUpperCase() })],
  ['redefines its name', (outcome) => Object.defineProperty(outcome, 'outcome', { value: 'duplicate' })],
  ['deletes its name', (outcome) => Reflect.deleteProperty(outcome, 'outcome')],
  ['gives it another prototype', (outcome) => Object.setPrototypeOf(outcome, { outcome: 'processed' }) as unknown],
  ['returns another one', () => ({ outcome: 'processed' })],
];

describe.each(httpServers)('on $name', (server) => {
  test.each(['onOutcome', 'logger', 'the diagnostics channel'])(
    'a failure stays a failure for a listener, as %s, that changes it',
    async (who) => {
      let trick: (outcome: TransferCallbackOutcome) => unknown = () => undefined;
      const change = (outcome: unknown): unknown => trick(outcome as TransferCallbackOutcome);
      const subscriber = (outcome: unknown): void => {
        try {
          change(outcome);
        } catch {
          // A frozen object throws; here a throw would be an uncaught exception.
        }
      };
      if (who === 'the diagnostics channel') {
        listen('transfer-callbacks:outcome', subscriber);
      }
      const { url } = await start(server, {
        ...recordingOptions().options,
        logger: who === 'logger' ? { warn: change, error: change } : false,
        onOutcome: who === 'onOutcome' ? change : undefined,
        onSuccess: () => Promise.reject(new Error('no')),
      });
      for (const [how, each] of tricks) {
        trick = each;
        const response = await post(url, transferSucceeded());
        expect([how, response.status, response.body]).toEqual([how, 500, failed]);
      }
    },
  );
});
