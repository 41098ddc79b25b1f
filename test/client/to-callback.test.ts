// A service whose callbacks are not the documented ones: what is read of it becomes a callback as it sends it.
import { expect, onTestFinished, test } from 'vitest';
import { memoryStore, transferCallbackReceiver } from 'transfer-callbacks';
import {
  confirmWith,
  inspectTransfer,
  reconcileTransfers,
  transferClient,
  type Transaction,
} from 'transfer-callbacks/client';
import { z } from 'zod/v4';
import { serve } from '../support/servers/serve.js';
import { containing } from '../support/helpers/containing.js';

const schema = z
  .object({ kind: z.enum(['payout.paid', 'payout.lost']), payout: z.object({ number: z.number(), mine: z.string() }) })
  .transform(({ kind, payout }) => {
    const data = { id: String(payout.number), externalId: payout.mine };
    return kind === 'payout.paid'
      ? { event: 'transfer.success' as const, data: { ...data, status: 'SUCCESS' as const } }
      : { event: 'transfer.failed' as const, data: { ...data, status: 'FAILED' as const } };
  });

/** The service of one payout, which is paid, a client of it, and a receiver of its callbacks. */
async function startService(toCallback?: (transaction: Transaction) => unknown, status = 'SUCCESS') {
  const payout = { number: 7, mine: 'payout-1' };
  const { url, close } = await serve((_request, response) =>
    response.end(JSON.stringify({ ...payout, state: 'paid' })),
  );
  onTestFinished(close);
  const client = transferClient({
    ...{ baseUrl: url, apiKey: 'key', apiSecret: 'secret', toCallback },
    readTransaction: (body) => {
      const { number, mine } = body as typeof payout;
      return { id: String(number), externalId: mine, status, payout: { number, mine } };
    },
  });
  const handled: string[] = [];
  const onSuccess = ({ data }: { data: { externalId: string } }): void => void handled.push(data.externalId);
  const confirm = confirmWith(client, { schema });
  const options = { store: memoryStore(), schema, onSuccess, onFailed: onSuccess, logger: false as const };
  return {
    client,
    handled,
    receiver: transferCallbackReceiver(options),
    confirming: transferCallbackReceiver({ ...options, confirm }),
    sent: { kind: 'payout.paid', payout },
  };
}

const toCallback = ({ payout }: Transaction) => ({ kind: 'payout.paid', payout });

test('with toCallback one schema takes what is sent, what is confirmed, what is reconciled and what is inspected', async () => {
  const { client, receiver, confirming, handled, sent } = await startService(toCallback);
  const pending = [{ id: 'payout-1', createdAt: 0 }];
  expect(await reconcileTransfers({ client, receiver, pending })).toMatchObject({ processed: 1 });
  expect(await confirming.receive(sent)).toMatchObject({ outcome: 'duplicate' });
  const inspection = await inspectTransfer({ client, receiver, id: 'payout-1' });
  expect(inspection).toMatchObject({ verdict: 'handled', service: { callback: sent } });
  expect(handled).toEqual(['payout-1']);
});

test('without toCallback the refusal of a schema of your own names it', async () => {
  const { client, receiver, confirming, sent } = await startService();
  const { problems } = await reconcileTransfers({ client, receiver, pending: [{ id: 'payout-1', createdAt: 0 }] });
  expect(problems).toMatchObject([
    { error: { code: 'NOT_HANDLED', message: containing('give the client `toCallback`') } },
  ]);
  const message = containing('let the `toCallback` of the client make what the service sends.');
  expect(await confirming.receive(sent)).toMatchObject({ outcome: 'unconfirmed', error: { message } });
});

test('what toCallback makes and the schema refuses is reported with its place, and without the advice to have one', async () => {
  const { client, receiver, confirming, handled, sent } = await startService(({ payout }) => ({
    kind: 'payout',
    payout,
  }));
  const { problems } = await reconcileTransfers({ client, receiver, pending: [{ id: 'payout-1', createdAt: 0 }] });
  const confirmed = (await confirming.receive(sent)) as { error?: unknown };
  expect([problems[0]?.error, confirmed.error].map(String)).toEqual([
    expect.stringMatching(/ended with invalid: kind: Invalid option(?!.*toCallback).*#not_handled/),
    expect.stringMatching(/not as `schema` expects, at kind\.(?!.*toCallback).*#unreadable_response/),
  ]);
  expect(handled).toEqual([]);
});

test('a toCallback with another outcome than the status books nothing', async () => {
  const { client, receiver, confirming, handled, sent } = await startService(toCallback, 'FAILED');
  const { problems } = await reconcileTransfers({ client, receiver, pending: [{ id: 'payout-1', createdAt: 0 }] });
  const message = containing('`toCallback`');
  expect(problems).toMatchObject([{ result: 'failed', error: { code: 'NOT_HANDLED', message } }]);
  const error = { code: 'UNREADABLE_RESPONSE', message };
  expect(await confirming.receive(sent)).toMatchObject({ outcome: 'unconfirmed', error });
  expect(handled).toEqual([]);
});

test('a toCallback with another id than the transaction books nothing', async () => {
  const { client, receiver, handled } = await startService(({ payout }) => ({
    kind: 'payout.paid',
    payout: { ...(payout as object), number: 8 },
  }));
  const { problems } = await reconcileTransfers({ client, receiver, pending: [{ id: 'payout-1', createdAt: 0 }] });
  expect(problems).toMatchObject([{ result: 'failed', error: { code: 'NOT_HANDLED' } }]);
  expect(handled).toEqual([]);
});

test('a pass in which the service responds with 404 to every query asks for the address, once', async () => {
  const { url, close } = await serve((_request, response) => response.writeHead(404).end());
  onTestFinished(close);
  const client = transferClient({ baseUrl: url, apiKey: 'key', apiSecret: 'secret' });
  const { receiver } = await startService();
  const pending = ['a', 'b'].map((id) => ({ id, createdAt: 0 }));
  expect(await reconcileTransfers({ client, receiver, pending })).toMatchObject({
    unknown: 2,
    advice: containing('is `baseUrl` right'),
  });
  expect(await reconcileTransfers({ client, receiver, pending: [] })).toMatchObject({ advice: undefined });
});
