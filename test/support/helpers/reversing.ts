// A payout service that reverses successes, in words of its own, for tests of reversals.
import {
  memoryStore,
  transferCallbackReceiver,
  type CallbackStore,
  type HandlerContext,
  type ReceiverOptions,
  type TransferCallbackReceiver,
} from 'transfer-callbacks';
import { defineService, type ServiceEvent } from 'transfer-callbacks/client';

export type Status = 'SUCCESS' | 'FAILED' | 'REVERSED';

const events = { SUCCESS: 'payout.paid', FAILED: 'payout.bounced', REVERSED: 'payout.returned' } as const;

interface Payload {
  event: string;
  data: { id: string; externalId: string; amount?: number | string; currency?: string };
}

export function read({ event, data }: Payload) {
  return { state: event, ...data };
}

export const states = { 'payout.paid': 'SUCCESS', 'payout.bounced': 'FAILED', 'payout.returned': 'REVERSED' } as const;
export const reversingService = defineService({ read, states });

type Reversing = ServiceEvent<ReturnType<typeof read>, typeof states>;

/** What the service sends. */
export function announced(status: Status, id: string, changes: object = {}) {
  return { event: events[status], data: { id, externalId: `payout-${id}`, amount: 100, currency: 'XAF', ...changes } };
}

/** The facts of what the service sends, as a record has them. */
export const factsOf = (status: Status, id: string): string => JSON.stringify([status, 100, 'XAF', `payout-${id}`]);

/** Notes in `ran` which handlers have succeeded, in their order: the status and the id. */
export function reversingReceiver<Tx = undefined>(
  store: CallbackStore<Tx>,
  options: Partial<ReceiverOptions<Reversing, Tx>> & {
    handle?: (status: Status, id: string, context: HandlerContext<Tx>) => unknown;
  } = {},
): { receiver: TransferCallbackReceiver<Reversing, Tx>; ran: string[] } {
  const { handle, ...rest } = options;
  const ran: string[] = [];
  const on = async (
    { data: { status, id } }: { data: { status: Status; id: string } },
    context: HandlerContext<Tx>,
  ) => {
    await handle?.(status, id, context);
    ran.push(`${status} ${id}`);
  };
  const receiver = transferCallbackReceiver<Reversing, Tx>({
    store,
    service: reversingService,
    onSuccess: on,
    onFailed: on,
    onReversed: on,
    retentionMs: 60 * 86_400_000,
    logger: false,
    ...rest,
  });
  return { receiver, ran };
}

/** A store whose claim may have both records, as in a SQL database. */
export function storeOfBoth(): ReturnType<typeof memoryStore> {
  const store = memoryStore();
  return {
    ...store,
    claimsBoth: true,
    async claim(key, request) {
      if (request.record !== 'both') return store.claim(key, request);
      const refund = await store.claim(key, { ...request, record: 'reversal' });
      if (refund.state !== 'claimed') return refund;
      const transfer = await store.claim(key, { ...request, record: undefined });
      if (transfer.state !== 'claimed') {
        await refund.claim.release();
        return transfer;
      }
      const settle = () => refund.claim.settle().then(() => transfer.claim.settle());
      const release = () => refund.claim.release().then(() => transfer.claim.release());
      return { state: 'claimed', claim: { ...transfer.claim, settle, release } };
    },
  };
}
