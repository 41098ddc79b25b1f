import { createServer } from 'node:http';
import { closeOnSignal, transferCallbackReceiver } from 'transfer-callbacks';
import { expect, test } from 'vitest';
import { recordingOptions } from '../support/helpers/logger.js';

// What it does is tried in processes of their own: test/faults/closing.test.ts, test/faults/processes.test.ts and
// test/examples/redis.test.ts.

const server = createServer();
const receiver = transferCallbackReceiver(recordingOptions().options);

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
])('with %s it throws when it is called, and listens to no signal', (_what, call, name, advice) => {
  const listeners = process.listenerCount('SIGTERM');
  expect(call).toThrow(
    expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(name) as string }),
  );
  expect(call).toThrow(advice);
  expect(process.listenerCount('SIGTERM')).toBe(listeners);
});
