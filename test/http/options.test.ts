// What the router, the listener and the handler make of their options, which they all resolve by one function, and what
// `closeOnSignal` refuses. What that does is tried in processes of their own, in test/faults.
import { createServer } from 'node:http';
import { afterEach, expect, test, vi } from 'vitest';
import {
  closeOnSignal,
  memoryStore,
  transferCallbackHandler,
  transferCallbackListener,
  transferCallbackReceiver,
  transferCallbackRouter,
  urlToken,
  type CallbackStore,
  type ReceiverOptions,
} from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { containing } from '../support/helpers/containing.js';
import { httpServers } from '../support/servers/http-servers.js';
import { post } from '../support/helpers/post.js';
import { recordingOptions } from '../support/helpers/logger.js';
import { otherService } from '../core/support.js';
import { startRecording } from './support.js';

const { options } = recordingOptions();
const receiver = transferCallbackReceiver(options);
const server = createServer();

const aVerifier = 'a verifier, or a list of at least one';
const writeVerify = 'Write `verify: urlToken(process.env.CALLBACK_SECRET)`.';
const aLimit = 'a whole number from 1 to 9007199254740991';
const wrong: [string, unknown, string][] = [
  ['no options', undefined, 'Expected `options` to be an object, got undefined.'],
  ['verify: null', { ...options, verify: null }, `Expected \`verify\` to be ${aVerifier}, got null. ${writeVerify}`],
  [
    'the verifier of an unknown tenant',
    { receiver, verify: new Map().get('unknown') as undefined },
    `Expected \`verify\` to be ${aVerifier}, got undefined. ${writeVerify}`,
  ],
  ['verify: []', { ...options, verify: [] }, `Expected \`verify\` to be ${aVerifier}, got an array.`],
  [
    'a list with a gap',
    { ...options, verify: [() => true, undefined] },
    `Expected \`verify\` to be ${aVerifier}, got an array.`,
  ],
  ['bodyLimitBytes: 0', { ...options, bodyLimitBytes: 0 }, `Expected \`bodyLimitBytes\` to be ${aLimit}, got 0.`],
  [
    'the receiver in place of its option',
    receiver,
    'Unknown option `receive`. Give the receiver as an option: `transferCallbackRouter({ receiver, verify })`.',
  ],
  [
    "a receiver and a receiver's option",
    { receiver, store: options.store },
    'Unknown option `store`. It belongs to the receiver that you have given: `transferCallbackReceiver({ store, … })`.',
  ],
  [
    'an option that neither of both has',
    { receiver, prefix: '' },
    'Unknown option `prefix`; known are verify, bodyLimitBytes, receiver.',
  ],
  ...(
    [
      ['without options', { receive: String }, 'an object'],
      ['with null for options', { receive: String, options: null }, 'an object'],
      ['that cannot receive', { options: {} }, 'an object'],
      ['that is null', null, 'null'],
    ] as const
  ).map(([what, given, got]): [string, unknown, string] => [
    `a receiver ${what}`,
    { receiver: given },
    `Expected \`receiver\` to be a receiver, got ${got}.`,
  ]),
];

test.each(wrong)('the option error for %s names what was expected and what was given', (_what, given, message) => {
  for (const mount of [transferCallbackRouter, transferCallbackListener, transferCallbackHandler]) {
    expect(() => mount(given as never)).toThrow(
      expect.objectContaining({
        name: 'TransferCallbackError',
        code: 'INVALID_ARGUMENT',
        message: containing(message),
      }),
    );
  }
});

test('a `verify` beside the options is refused, because it would be ignored', () => {
  const mount = transferCallbackRouter as (...given: readonly unknown[]) => unknown;
  expect(() => mount({ receiver }, () => false)).toThrow('Expected `options` to be left out, got a function.');
});

test.each([
  ['no server', () => closeOnSignal({} as never, receiver), '`server`', 'closeOnSignal(app.listen(3000), receiver)'],
  [
    'no receiver',
    () => closeOnSignal(server, server as never),
    '`receiver`',
    'closeOnSignal(app.listen(3000), receiver)',
  ],
  ['a bare number', () => closeOnSignal(server, receiver, 25_000 as never), '`options`', '{ timeoutMs: 25_000 }'],
  ['no time', () => closeOnSignal(server, receiver, { timeoutMs: -1 }), '`timeoutMs`', 'got -1'],
])('closeOnSignal with %s throws when it is called, and listens to no signal', (_what, call, name, advice) => {
  const listeners = process.listenerCount('SIGTERM');
  expect(call).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', message: containing(name) }));
  expect(call).toThrow(advice);
  expect(process.listenerCount('SIGTERM')).toBe(listeners);
});

const open = {
  level: 'warn',
  message: 'Every sender of callbacks is trusted: set `verify` or `confirm`.',
  details: {},
};
const memory = memoryStore();
const shared: CallbackStore = { claim: (key, request) => memory.claim(key, request) };
const confirm = <C>(callback: C): C => callback;
afterEach(() => {
  vi.unstubAllEnvs();
});

test.each(httpServers)('that nobody is checked in production is logged once, when $name is made', async (server) => {
  vi.stubEnv('NODE_ENV', 'production');
  const { url, logged } = await startRecording(server, { store: shared });
  expect(logged).toEqual([open]);
  await post(url, transferSucceeded());
  await post(url, transferSucceeded());
  expect(logged).toEqual([open]);
});

test('no warning is logged with a check of the sender, or elsewhere than in production', () => {
  const { options, logged } = recordingOptions();
  for (const environment of [undefined, 'development', 'test', 'Production']) {
    vi.stubEnv('NODE_ENV', environment);
    transferCallbackListener(options);
  }
  vi.stubEnv('NODE_ENV', 'production');
  const given = { ...options, store: shared };
  transferCallbackListener({ ...given, verify: urlToken('a-secret-long-enough') });
  transferCallbackListener({ ...given, confirm });
  transferCallbackListener({ receiver: transferCallbackReceiver({ ...given, confirm }) });
  expect(logged).toEqual([]);
});

test('onOther beside confirm needs a verifier, because confirm cannot vouch for its events', () => {
  const { options } = recordingOptions();
  const given: object = { ...options, service: otherService, confirm, onOther: () => undefined };
  const both = given as ReceiverOptions;
  const receiver = transferCallbackReceiver(both);
  for (const given of [both, { receiver }]) {
    expect(() => transferCallbackListener(given)).toThrow(
      'Expected `verify` to be given beside `onOther`, whose events `confirm` cannot vouch for, got undefined.',
    );
    expect(() => transferCallbackListener({ ...given, verify: urlToken('a-secret-of-the-address') })).not.toThrow();
  }
});

test.each([transferCallbackRouter, transferCallbackListener, transferCallbackHandler])(
  '$name has the receiver that it was given, or that it has made',
  async (mount) => {
    expect(mount({ receiver }).receiver).toBe(receiver);
    const { options, handled } = recordingOptions();
    const made = mount(options).receiver;
    expect(await made.receive(transferSucceeded())).toMatchObject({ outcome: 'processed' });
    expect(handled).toHaveLength(1);
    expect(() => mount({ receiver: made, verify: () => true })).not.toThrow();
  },
);
