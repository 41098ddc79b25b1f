// A payout service that takes successes back, in words of its own, for tests of reversals.
import { z } from 'zod/v4';
import {
  transferCallbackReceiver,
  type CallbackStore,
  type HandlerContext,
  type ReceiverOptions,
  type TransferCallbackReceiver,
} from 'transfer-callbacks';

export type Status = 'SUCCESS' | 'FAILED' | 'REVERSED';

const events = { SUCCESS: 'transfer.success', FAILED: 'transfer.failed', REVERSED: 'transfer.reversed' } as const;
const data = z.looseObject({
  id: z.string(),
  externalId: z.string(),
  amount: z.union([z.number(), z.string()]).optional(),
  currency: z.string().optional(),
});
const announce = <S extends Status>(status: S) =>
  z
    .looseObject({ event: z.literal(events[status]), data })
    .transform((given) => ({ ...given, event: events[status], data: { ...given.data, status } }));

/** Makes a callback of each status. */
export const reversingSchema = z.union([announce('SUCCESS'), announce('FAILED'), announce('REVERSED')]);

type Reversing = z.infer<typeof reversingSchema>;

/** What the service sends. */
export function announced(status: Status, id: string, changes: object = {}) {
  return { event: events[status], data: { id, externalId: `payout-${id}`, amount: 100, currency: 'XAF', ...changes } };
}

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
    schema: reversingSchema,
    onSuccess: on,
    onFailed: on,
    onReversed: on,
    retentionMs: 60 * 86_400_000,
    logger: false,
    ...rest,
  });
  return { receiver, ran };
}
