import { describe, expect, test } from 'vitest';
import { transferCallbackReceiver } from 'transfer-callbacks';
import { httpServers, type HttpServer } from '../support/http-servers.js';
import { recordingOptions } from '../support/recording-options.js';
import { containing } from '../support/containing.js';

describe('options of the router and the listener', () => {
  const { options } = recordingOptions();
  const receiver = transferCallbackReceiver(options);
  const known = 'store, onSuccess, onFailed, onOther, confirm, schema, onOutcome, logger';
  const times =
    'verifyTimeoutMs, confirmTimeoutMs, inFlightWaitMs, leaseMs, handlerTimeoutMs, storeTimeoutMs, retentionMs';

  const wrong: [string, object, string][] = [
    [
      'verify: null',
      { ...options, verify: null },
      'Expected `verify` to be a function or a list of at least one, got null.',
    ],
    [
      'verify: []',
      { ...options, verify: [] },
      'Expected `verify` to be a function or a list of at least one, got an array.',
    ],
    [
      'a list with a gap',
      { ...options, verify: [() => true, undefined] },
      'Expected `verify` to be a function or a list of at least one, got an array.',
    ],
    [
      'bodyLimitBytes: 0',
      { ...options, bodyLimitBytes: 0 },
      'Expected `bodyLimitBytes` to be a whole number from 1 to 9007199254740991, got 0.',
    ],
    [
      'bodyLimitBytes: "100kb"',
      { ...options, bodyLimitBytes: '100kb' },
      'Expected `bodyLimitBytes` to be a whole number from 1 to 9007199254740991, got "100kb".',
    ],
    [
      'an option that does not exist',
      { ...options, verifier: () => true },
      `Unknown option \`verifier\`; known are verify, bodyLimitBytes, ${known}, ${times}.`,
    ],
    [
      "a receiver and a receiver's option",
      { receiver, store: options.store },
      'Unknown option `store`; known are verify, bodyLimitBytes, receiver.',
    ],
    [
      'no store',
      { ...options, store: undefined },
      'Expected `store` to be a store, such as memoryStore(), redisStore(client) or pgStore(pool), got undefined.',
    ],
    [
      'no handler',
      { store: options.store, onSuccess: () => 1 },
      'Expected `onFailed` to be a function, got undefined.',
    ],
  ];

  describe.each(httpServers)('on $name', (server) => {
    test.each(wrong)(
      'the option error for %s names the option, what was expected and what was given',
      async (_what, given, message) => {
        await expect(server.start(given as Parameters<HttpServer['start']>[0])).rejects.toMatchObject({
          name: 'TransferCallbackError',
          code: 'INVALID_ARGUMENT',
          message: containing(message),
        });
      },
    );

    test.each([
      ['is none', {}, 'an object'],
      ['has no options', { receive: String }, 'an object'],
      ['has null for options', { receive: String, options: null }, 'an object'],
      ['cannot receive', { options: {} }, 'an object'],
      ['is null', null, 'null'],
    ])('a receiver that %s is refused', async (_what, receiver, given) => {
      await expect(server.start({ receiver } as never)).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: containing(`Expected \`receiver\` to be a receiver, got ${given}.`),
      });
    });

    test.each([
      ['nothing', undefined],
      ['null', null],
      ['a text', 'https://example.test'],
    ])('%s instead of options is refused', async (_what, given) => {
      await expect(server.start(given as unknown as Parameters<HttpServer['start']>[0])).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
      });
    });
  });
});
