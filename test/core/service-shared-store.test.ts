// Two services of one app on one store, where each id must be that of one transfer.
import { expect, test } from 'vitest';
import { memoryStore } from 'transfer-callbacks';
import { announced, serve } from './service-support.js';

test('a conflict of another transfer asks whether two services share the store', async () => {
  const store = memoryStore();
  const [first, second] = [serve({}, { store }), serve({}, { store })];
  await first.receive(announced('payout.paid'));
  const other = await second.receive(announced('payout.paid', { reference: 'payout-of-another-service' }));
  expect(other).toMatchObject({ outcome: 'conflict' });
  // The same transfer with another amount, or another status, is no sign of that.
  await second.receive(announced('payout.paid', { amount: 101 }));
  await second.receive(announced('payout.bounced', { reference: 'payout-2' }));
  const usual = 'A callback contradicts the one that was handled under its id.';
  expect(second.logger.lines.map(({ level, message }) => [level, message])).toEqual([
    ['error', 'Another transfer has this id: do two services share this store? Give each a `prefix` or a `table`.'],
    ['error', usual],
    ['error', usual],
  ]);
  expect(second.handled).toEqual([]);
});
