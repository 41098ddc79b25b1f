import { type } from 'arktype';
import * as v from 'valibot';
import { describe, expect, expectTypeOf, test, vi } from 'vitest';
import { z as zod3 } from 'zod3';
import { memoryStore, transferCallbackReceiver } from 'transfer-callbacks';
import { transferService } from 'transfer-callbacks/client';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import type { StandardSchema } from '../../src/lib/standard-schema.js';
import { receiverOf } from '../core/support.js';
import { recordingLogger } from '../support/helpers/logger.js';
import { containing } from '../support/helpers/containing.js';

/** What every schema here asks for, and what it produces. */
interface Small {
  event: 'transfer.success' | 'transfer.failed';
  data: { id: string; externalId: string; status: 'SUCCESS' | 'FAILED'; amount: number; currency: string };
}

const events = ['transfer.success', 'transfer.failed'] as const;
const statuses = ['SUCCESS', 'FAILED'] as const;
const inValibot = v.object({
  event: v.picklist(events),
  data: v.object({
    id: v.string(),
    externalId: v.string(),
    status: v.picklist(statuses),
    amount: v.number(),
    currency: v.string(),
  }),
});
const inArkType = type({
  event: "'transfer.success' | 'transfer.failed'",
  data: { id: 'string', externalId: 'string', status: "'SUCCESS' | 'FAILED'", amount: 'number', currency: 'string' },
});
const inZod3 = zod3.object({
  event: zod3.enum(events),
  data: zod3.object({
    id: zod3.string(),
    externalId: zod3.string(),
    status: zod3.enum(statuses),
    amount: zod3.number(),
    currency: zod3.string(),
  }),
});

const schemas: [string, StandardSchema<Small>][] = [
  ['valibot', inValibot],
  ['ArkType', inArkType],
  ['zod 3', inZod3],
];

const receiverWith = (payload: StandardSchema<Small>, options: object = {}) =>
  receiverOf({ service: transferService({ payload }) as never, ...options });

describe.each(schemas)('a schema of %s', (_library, schema) => {
  test('a callback that fits the schema is handled as the schema has made it', async () => {
    const handler = vi.fn();
    const receiver = receiverWith(schema, { onSuccess: handler, onFailed: handler });
    for (const callback of [transferSucceeded(), transferFailed()]) {
      expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed', id: callback.data.id });
      expect(handler.mock.lastCall?.[0]).toMatchObject({ event: callback.event, data: { id: callback.data.id } });
    }
  });

  test('what does not fit names its wrong place, and no value', async () => {
    const { event, data } = transferSucceeded();
    const receiver = receiverWith(schema);
    const outcome = await receiver.receive({ event, data: { ...data, amount: '+237 699 000 000' } });
    expect(outcome).toMatchObject({ outcome: 'invalid', issues: [{ path: ['data', 'amount'] }] });
    expect(JSON.stringify(outcome)).not.toContain('699 000');
    const atTop = await receiver.receive('callback');
    expect(atTop).toMatchObject({ outcome: 'invalid', issues: [{ path: [] }] });
    expect(atTop).not.toHaveProperty('error');
  });
});

test('a schema of valibot checks what is read from the service, too', async () => {
  const callback = transferSucceeded();
  const handler = vi.fn();
  const receiveConfirmed = (read: object) => {
    const confirm = () => ({ event: callback.event, data: read });
    return receiverWith(inValibot, { onSuccess: handler, confirm }).receive(callback);
  };
  expect(await receiveConfirmed({ ...callback.data, fee: 5 })).toMatchObject({ outcome: 'processed' });
  // A schema of valibot drops what it does not know.
  expect(handler.mock.calls).toMatchObject([[{ data: { id: callback.data.id, amount: callback.data.amount } }, {}]]);
  expect(handler.mock.calls[0]).not.toMatchObject([{ data: { fee: 5 } }, {}]);
  expect(await receiveConfirmed({ ...callback.data, externalId: null })).toMatchObject({
    outcome: 'unconfirmed',
    error: { code: 'UNCONFIRMED', message: containing('The transfer that was read is no callback: data.externalId: ') },
  });
  expect(handler).toHaveBeenCalledTimes(1);
});

test('a schema gives its type to the handlers', () => {
  const options = { store: memoryStore(), onFailed: () => undefined, logger: false } as const;
  transferCallbackReceiver({
    ...options,
    service: transferService({ payload: inValibot }),
    onSuccess: (callback) => {
      expectTypeOf(callback.data).toEqualTypeOf<Small['data']>();
    },
  });
  transferCallbackReceiver({
    ...options,
    service: transferService({ payload: inArkType }),
    onSuccess: (callback) => {
      expectTypeOf(callback.data).toEqualTypeOf<Small['data']>();
    },
  });
});

test.each([
  ['resolves', () => Promise.resolve({ value: transferSucceeded() })],
  ['rejects', () => Promise.reject(new Error('no database today'))],
])('an asynchronous schema that %s is a fault of the app, and ends no process', async (_how, validate) => {
  const logger = recordingLogger();
  const schema = { '~standard': { validate } } as unknown as StandardSchema<Small>;
  expect(await receiverWith(schema, { logger }).receive(transferSucceeded())).toMatchObject({
    outcome: 'invalid',
    error: { code: 'INVALID_ARGUMENT', message: containing('Expected `payload` to be synchronous.') },
  });
  expect(logger.lines).toMatchObject([{ level: 'error' }]);
  // An unhandled rejection would fail the run.
  await new Promise((resolve) => setImmediate(resolve));
});
