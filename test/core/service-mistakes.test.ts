// What the obvious mistakes about a payout service lead to. Types find others: see test/types/service.ts.
import { describe, expect, test, vi } from 'vitest';
import { TransferClientError } from '../../src/client/errors.js';
import { toResponse } from '../../src/http/responses.js';
import { announced, define, read, serve, states } from './service-support.js';

type Payload = ReturnType<typeof announced>;
const paid = announced('payout.paid');
const statuses = (handled: readonly unknown[]): unknown[] =>
  handled.map((each) => (each as { data: { status: string } }).data.status);

describe('caught by the definition', () => {
  test('one event for both ends has no failure', () => {
    expect(() => define({ states: { 'transfer.completed': 'SUCCESS' } })).toThrow(
      'Expected `states` to be an object with a state that is FAILED or REVERSED',
    );
  });

  test('a failure that is named REVERSED needs no onFailed, which would never be called', async () => {
    const definition = { states: { 'payout.paid': 'SUCCESS', 'payout.bounced': 'REVERSED' } };
    const options = { onFailed: undefined, retentionMs: 60 * 86_400_000 };
    const returned: unknown[] = [];
    const onReversed = ({ data }: { data: { id: string } }) => returned.push(data.id);
    const { receive } = serve(definition, { ...options, onReversed });
    for (const event of ['payout.paid', 'payout.bounced']) {
      expect(await receive(announced(event))).toMatchObject({ outcome: 'processed' });
    }
    expect(returned).toHaveLength(1);
    expect(() => serve(definition, { ...options, onReversed, onFailed: () => undefined })).toThrow(
      'Expected `onFailed` to be left out, because no state of the service is FAILED',
    );
    expect(() => serve({}, { onFailed: undefined })).toThrow('Expected `onFailed` to be a function, got undefined');
  });

  test('a handler that is missing, or is never called, makes no receiver', () => {
    const withCharge = { states: { ...states, 'charge.paid': 'OTHER' } };
    expect(() => serve(withCharge)).toThrow('Expected `onOther` to be a function, got undefined');
    expect(() => serve({}, { onOther: () => undefined })).toThrow('Expected `onOther` to be left out');
  });
});

describe('caught loudly at run time', () => {
  test('a state that is not listed is no failure, even if it comes before the success', async () => {
    const { receive, handled, logger } = serve();
    const outcome = await receive(announced('payout.queued'), { verify: () => true });
    expect(toResponse(outcome).status).toBe(400);
    expect(logger.lines).toMatchObject([{ level: 'error', details: { id: '7', externalId: 'payout-1' } }]);
    expect(await receive(paid)).toMatchObject({ outcome: 'processed' });
    expect(statuses(handled)).toEqual(['SUCCESS']);
  });

  test('a transfer without an id of yours is refused, and the message does not tell to ignore it', async () => {
    const { receive, handled } = serve();
    const outcome = await receive(announced('payout.paid', { reference: null }));
    expect(outcome).toMatchObject({ outcome: 'invalid', id: '7' });
    expect(JSON.stringify(outcome)).toContain('renamed the field of your id, correct `read`');
    expect(JSON.stringify(outcome)).not.toContain('ignored');
    expect(handled).toEqual([]);
  });

  test('a last branch that ignores all others cannot ignore a state', async () => {
    const onlyFailures = (payload: Payload) =>
      payload.event === 'payout.bounced' ? read(payload) : { ignored: payload.event };
    const { receive, logger } = serve({ read: onlyFailures });
    expect(await receive(paid)).toMatchObject({ outcome: 'invalid', issues: [{ path: ['ignored'] }] });
    // Nor is a name of which nobody has thought lost without a warning.
    expect(await receive(announced('payout.sent'))).toMatchObject({ outcome: 'ignored', count: 1 });
    expect(logger.lines).toHaveLength(2);
  });

  test('the names of another service are unknown states', async () => {
    const { receive, handled } = serve();
    for (const event of ['transfer.success', 'transfer.failed', 'PAYOUT.PAID', 'payout.paid ']) {
      expect(await receive(announced(event))).toMatchObject({ outcome: 'invalid', issues: [{ path: ['state'] }] });
    }
    expect(handled).toEqual([]);
  });

  test('a reversal that is taken for a failure refunds nothing after the success', async () => {
    const { receive, handled } = serve({ states: { ...states, 'payout.returned': 'FAILED' } });
    await receive(paid);
    expect(await receive(announced('payout.returned'))).toMatchObject({ outcome: 'conflict' });
    expect(statuses(handled)).toEqual(['SUCCESS']);
    await receive(announced('payout.bounced', { id: 8 }));
    expect(await receive(announced('payout.returned', { id: 8 }))).toMatchObject({ outcome: 'duplicate' });
    expect(statuses(handled)).toEqual(['SUCCESS', 'FAILED']);
  });
});

describe('harmless with a definition', () => {
  test('ids that are numbers, and amounts of two forms, are one transfer', async () => {
    const { receive, handled } = serve();
    expect(await receive(paid)).toMatchObject({ outcome: 'processed' });
    for (const changes of [{ id: '7' }, { amount: '100' }, { amount: '100.00' }]) {
      expect(await receive(announced('payout.paid', changes))).toMatchObject({ outcome: 'duplicate' });
    }
    expect(handled).toHaveLength(1);
  });

  test('an event and a status cannot contradict each other, because one state decides', async () => {
    const { receive, handled } = serve({ read: (payload: Payload) => ({ ...read(payload), status: 'FAILED' }) });
    await receive(paid);
    expect(handled).toMatchObject([{ event: 'transfer.success', data: { status: 'SUCCESS' } }]);
  });

  test('"0" and 0 are the same state', async () => {
    const byCode = ({ code }: { code: unknown }) => ({ state: code, id: String(code), externalId: 'p' });
    const { receive, handled } = serve({ read: byCode, states: { 0: 'SUCCESS', 1: 'FAILED' } });
    await receive({ code: '0' });
    expect(statuses(handled)).toEqual(['SUCCESS']);
  });
});

describe('not caught, unless the service is asked', () => {
  /** The service knows its transfer by the id 7 alone. */
  const query = vi.fn((id: string) => {
    if (id === '7') return Promise.resolve(paid);
    return Promise.reject(
      new TransferClientError('REFUSED', 'The service does not know the transfer.', { status: 404 }),
    );
  });

  test.each<[string, object, Payload[]]>([
    [
      'the id of the event in place of that of the transfer',
      { read: (payload: Payload & { eventId: string }) => ({ ...read(payload), id: payload.eventId }) },
      [
        Object.assign(announced('payout.paid'), { eventId: 'e-1' }),
        Object.assign(announced('payout.paid'), { eventId: 'e-2' }),
      ],
    ],
    [
      'a reversal that is a failure with another id',
      {
        read: (payload: Payload) =>
          payload.event === 'payout.returned' ? { ...read(payload), id: `${payload.data.id}-returned` } : read(payload),
        states: { ...states, 'payout.returned': 'FAILED' },
      },
      [announced('payout.bounced'), announced('payout.returned')],
    ],
  ])('%s', async (_what, mistake, callbacks) => {
    const trusting = serve(mistake);
    for (const callback of callbacks) await trusting.receive(callback);
    // Money has moved twice.
    expect(trusting.handled).toHaveLength(2);

    const asking = serve({ ...mistake, query }, { confirm: true });
    const wrong = callbacks.at(-1);
    const outcome = await asking.receive(wrong);
    expect(outcome).toMatchObject({ outcome: 'unconfirmed', error: { code: 'REFUSED', status: 404 } });
    expect(toResponse(outcome).status).toBe(503);
    expect(asking.logger.lines).toMatchObject([{ level: 'error' }]);
    expect(asking.handled).toEqual([]);
  });

  test('a success that is listed as a failure is handled as one, because what is queried is read in the same way', async () => {
    const swapped = { states: { 'payout.paid': 'FAILED', 'payout.bounced': 'SUCCESS' } };
    const { receive, handled } = serve({ ...swapped, query }, { confirm: true });
    await receive(paid);
    expect(statuses(handled)).toEqual(['FAILED']);
  });
});
