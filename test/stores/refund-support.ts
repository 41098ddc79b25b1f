// A receiver of a service that reverses successes, for the tests of one transfer on several stores.
import type { CallbackStore } from 'transfer-callbacks';
import { onTestFinished } from 'vitest';
import { announced, reversingReceiver, type Status } from '../support/helpers/reversing.js';

/**
 * Makes a receiver that closes with its test. `receive` sends it the callback of one transfer, and resolves with the
 * outcome and, for a duplicate of another status, with that status.
 */
export function receivingAs<Tx>(
  id: string,
  store: CallbackStore<Tx>,
  options: Parameters<typeof reversingReceiver<Tx>>[1] = {},
) {
  const { receiver, ran } = reversingReceiver(store, options);
  onTestFinished(async () => {
    await receiver.close({ timeoutMs: 0 });
  });
  const receive = async (status: Status, changes: object = {}): Promise<string> => {
    const ended = await receiver.receive(announced(status, id, changes));
    const recorded =
      ended.outcome === 'duplicate' && ended.recorded !== undefined ? ` of ${ended.recorded.status}` : '';
    return `${ended.outcome}${recorded}`;
  };
  return { receiver, ran, receive };
}
