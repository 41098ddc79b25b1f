import { hasMethods, invalidArgument, requireFunction } from '../lib/checks.js';
import { requireSchema, type StandardSchema } from '../lib/standard-schema.js';
import type { CallbackOf, EventShape, OtherEvent } from './callback.js';
import { transferCallbackSchema } from './callback-schema.js';
import { documentedService } from './documented.js';
import type { ConfirmByQuery, PayoutService, StateMeaning } from './payout-service.js';

// These functions read the receiver's options about its service. Each throws INVALID_ARGUMENT.

/** Returns the service whose callbacks the receiver reads. */
export function resolveService<E extends EventShape>({
  service,
  schema,
}: {
  readonly service?: PayoutService<E> | undefined;
  readonly schema?: StandardSchema<E> | undefined;
}): PayoutService<CallbackOf<E> | OtherEvent> {
  if (service === undefined) {
    if (schema !== undefined) requireSchema('schema', schema, 'schema: transferCallbackSchema');
    // Without a schema, E is its default, TransferCallback.
    return documentedService((schema ?? transferCallbackSchema) as unknown as StandardSchema<CallbackOf<E>>);
  }
  // Without the meanings of its states nothing tells which handlers it needs.
  if (!hasMethods(service, 'readCallback') || service.meanings === undefined) {
    throw invalidArgument('service', 'made by `defineService`', service, 'service: defineService({ read, states })');
  }
  if (schema !== undefined) throw invalidArgument('schema', 'left out beside `service`', schema);
  return service as unknown as PayoutService<CallbackOf<E>>;
}

interface Handlers {
  readonly onReversed?: unknown;
  readonly onOther?: unknown;
  readonly store: unknown;
  readonly retentionMs?: number | undefined;
}

/** A missing handler would lose money, and a handler that is never called is a mistake about the service. */
export function requireOtherHandlers(
  { meanings }: PayoutService,
  { onReversed, onOther, store, retentionMs }: Handlers,
): void {
  requireFor('REVERSED', 'onReversed', onReversed, meanings ?? none);
  // The schema of the documented service may make an event of `onOther`.
  if (meanings === undefined) {
    if (onOther !== undefined) requireFunction('onOther', onOther, '(event) => {}');
  } else {
    requireFor('OTHER', 'onOther', onOther, meanings);
  }
  if (onReversed === undefined) return;
  if (!hasMethods(store, 'read')) throw invalidArgument('store', 'a store with `read` beside `onReversed`', store);
  const example = 'retentionMs: 60 * 86_400_000';
  if (retentionMs === undefined) {
    const expected = 'given beside `onReversed`: longer than the service takes to reverse a transfer';
    throw invalidArgument('retentionMs', expected, retentionMs, example);
  }
  // In seconds by mistake, it would let a copy run a handler again after an hour or two.
  if (retentionMs < dayMs) {
    const expected = `at least ${dayMs} beside \`onReversed\`, which is a day in milliseconds`;
    throw invalidArgument('retentionMs', expected, retentionMs, example);
  }
}

const dayMs = 86_400_000;

/** The code that an error proposes for a handler. People paste it, and an empty one would acknowledge each callback. */
export const unwritten = "async ({ data }) => { throw new Error('Not written yet') }";

const none: ReadonlySet<StateMeaning> = new Set();

function requireFor(meaning: StateMeaning, name: string, handler: unknown, meanings: ReadonlySet<StateMeaning>): void {
  if (meanings.has(meaning)) {
    requireFunction(name, handler, unwritten);
  } else if (handler !== undefined) {
    throw invalidArgument(
      name,
      `left out, because no state of the service is ${meaning}`,
      handler,
      `${name}: undefined`,
    );
  }
}

/** Returns the function that confirms a callback. */
export function resolveConfirm<F>(
  service: PayoutService,
  confirm: F | true | undefined,
): F | ConfirmByQuery | undefined {
  if (confirm === true) {
    if (service.confirm !== undefined) return service.confirm;
    const expected = 'a function: this service has no `query` to ask';
    const example =
      service.meanings === undefined ? 'confirm: confirmWith(client)' : 'defineService({ read, states, query })';
    throw invalidArgument('confirm', expected, confirm, example);
  }
  if (confirm !== undefined) requireFunction('confirm', confirm, 'confirmWith(client)');
  return confirm;
}
