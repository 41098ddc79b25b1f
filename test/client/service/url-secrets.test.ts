import { inspect as show } from 'node:util';
import { expect, test } from 'vitest';
import { memoryStore } from 'transfer-callbacks';
import { defineService, reconcileTransfer } from 'transfer-callbacks/client';
import { reversingReceiver } from '../../support/helpers/reversing.js';
import { startService } from '../support.js';

test("shows neither the values of a URL's query nor a header that ends in a newline, although the service repeats them", async () => {
  const [inHeader, longer, begun] = ['a-secret-of-a-header', 'a secret+of the URL', 'a secret'];
  const written = encodeURIComponent(longer);
  const id = 'payout-of-today';
  const message = [id, inHeader, longer, written, begun].join('|');
  const { baseUrl } = await startService([[400, { error: true, statusCode: 400, message, data: null }]]);
  const service = defineService({
    read: ({ state }: { state: string }) => ({ state, id }),
    states: { paid: 'SUCCESS', bounced: 'FAILED', returned: 'REVERSED' },
    baseUrl,
    query: (asked, get) =>
      get(`/?id=${asked}&old=${encodeURIComponent(begun)}&token=${written}`, { authorization: `${inHeader}\n` }),
  });
  const { receiver } = reversingReceiver(memoryStore(), { service });

  const result = await reconcileTransfer({ receiver, id });

  if (result.result !== 'failed') expect.fail(result.result);
  const shown = `${id}|[redacted]|[redacted]|[redacted]|[redacted]`;
  expect(result.error).toMatchObject({ code: 'REFUSED', body: { message: shown } });
  expect([inHeader, longer, written].filter((secret) => show(result.error).includes(secret))).toEqual([]);
});
