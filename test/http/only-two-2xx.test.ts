import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { TransferCallbackOutcome } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { httpServers } from '../support/http-servers.js';
import { errorBody, post } from '../support/post.js';
import { witness } from '../support/witness.js';

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
  describe.each(tricks)('who is told of a failure and %s', (_how, trick) => {
    test.each(['onOutcome', 'logger', 'the diagnostics channel'])(
      'a failure stays a failure for a listener, as %s, that changes it',
      async (who) => {
        const { options } = witness();
        const subscriber = (outcome: unknown): void => {
          try {
            trick(outcome as TransferCallbackOutcome);
          } catch {
            // A frozen object throws; here a throw would be an uncaught exception.
          }
        };
        const log = (details: object): void => {
          trick(details as TransferCallbackOutcome);
        };
        if (who === 'the diagnostics channel') {
          subscribe('transfer-callbacks:outcome', subscriber);
          onTestFinished(() => {
            unsubscribe('transfer-callbacks:outcome', subscriber);
          });
        }
        const { url, close } = await server.start({
          ...options,
          logger: who === 'logger' ? { warn: log, error: log } : false,
          onOutcome: who === 'onOutcome' ? trick : undefined,
          onSuccess() {
            throw new Error('no');
          },
        });
        onTestFinished(close);
        const answer = await post(url, transferSucceeded());
        expect([answer.status, answer.body]).toEqual([500, failed]);
      },
    );
  });
});
