import { expect, test } from 'vitest';
import { hmacSignature, memoryStore, TransferCallbackError, transferCallbackSchema } from 'transfer-callbacks';
import { defineService } from 'transfer-callbacks/client';
import { containing } from '../support/helpers/containing.js';
import { announced, define, serve, states } from './service-support.js';
import { thrownBy } from './support.js';

const signed = hmacSignature({ header: 'x-signature', secrets: 'a-secret-long-enough' });
const aVerifier = 'a verifier, or a list of at least one';
const aMeaning = 'one of SUCCESS, FAILED, REVERSED, PENDING, OTHER';
const aSchema = 'a schema of zod 3.24 or later, or of another library with Standard Schema';
const aService = 'made by `transferService` or `defineService`';
const aState = (status: string) => `an object with a state that is ${status}`;

test.each<[given: object, expected: string, got: string, option?: string]>([
  [{ read: undefined }, 'a function', 'undefined'],
  [{ read: { state: 'a' } }, 'a function', 'an object'],
  [{ payload: {} }, aSchema, 'an object'],
  [{ payload: null }, aSchema, 'null'],
  [{ payload: undefined }, aSchema, 'undefined'],
  [{ states: undefined }, 'an object', 'undefined'],
  [{ states: null }, 'an object', 'null'],
  [{ states: ['SUCCESS', 'FAILED'] }, 'an object', 'an array'],
  [{ states: 'SUCCESS' }, 'an object', '"SUCCESS"'],
  [{ states: { ...states, late: 'success' } }, aMeaning, '"success"', "states['late']"],
  [{ states: { ...states, late: undefined } }, aMeaning, 'undefined', "states['late']"],
  [{ states: { ...states, late: 'toString' } }, aMeaning, '"toString"', "states['late']"],
  [{ states: { ...states, 'two\nlines': 'FAILED' } }, 'an object whose keys are printable', 'an object'],
  [{ states: {} }, aState('SUCCESS'), 'an object'],
  [{ states: { bounced: 'FAILED', back: 'REVERSED' } }, aState('SUCCESS'), 'an object'],
  [{ states: { paid: 'SUCCESS', waiting: 'PENDING' } }, aState('FAILED or REVERSED'), 'an object'],
  [{ verify: undefined }, aVerifier, 'undefined'],
  [{ verify: null }, aVerifier, 'null'],
  [{ verify: 'a-secret-long-enough' }, aVerifier, 'a string of 20 characters'],
  [{ verify: [] }, aVerifier, 'an array'],
  [{ verify: [signed, undefined] }, aVerifier, 'an array'],
  [{ query: 'https://service.example' }, 'a function', 'a string of 23 characters'],
  [{ baseUrl: 'service.example' }, 'an http or https URL', 'a string of 15 characters'],
  [{ timeoutMs: 0 }, 'a whole number from 1 to 2147483647', '0'],
  [{ timeoutMs: '10s' }, 'a whole number from 1 to 2147483647', '"10s"'],
  [{ fetch: {} }, 'a function', 'an object'],
])(
  'a wrong value of an option of a definition is refused with what was expected: %o',
  (given, expected, got, named) => {
    const name = named ?? Object.keys(given)[0];
    const error = thrownBy(() => define(given));
    expect(error).toBeInstanceOf(TransferCallbackError);
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', option: name, expected: containing(expected), got });
    expect((error as Error).message).toContain(
      `Expected \`${name}\` to be ${(error as { expected: string }).expected}, got ${got}.`,
    );
  },
);

test('an error about a definition has the code to write instead', () => {
  const reads = thrownBy(() => define({ read: undefined })) as { write: string };
  expect(reads.write).toContain('amount: data.amount, currency: data.currency');
  const { write } = thrownBy(() => define({ states: { paid: 'SUCCESS' } })) as { write: string };
  expect(write).toBe("states: { 'payout.paid': 'SUCCESS', 'payout.bounced': 'FAILED' }");
  expect(thrownBy(() => define({ fetch: {} }))).toMatchObject({ write: 'fetch: globalThis.fetch' });
});

test('a service has the verifier of its definition, and can be asked only by its `query`', () => {
  expect(define({ verify: signed })).toMatchObject({ verify: signed });
  expect(define({ query })).toMatchObject({ ask: expect.any(Function) as object });
  expect(define({})).not.toHaveProperty('ask');
});

test('a definition is refused without options, and options of undefined mean their defaults', () => {
  expect(thrownBy(() => defineService(undefined as never))).toMatchObject({ option: 'options' });
  expect(define({ query: undefined, baseUrl: undefined, timeoutMs: undefined, fetch: undefined })).not.toHaveProperty(
    'verify',
  );
});

const handler = (): undefined => undefined;
const withOthers = { states: { ...states, back: 'REVERSED', charge: 'OTHER' } };
const both = { onReversed: handler, onOther: handler, retentionMs: 60 * 86_400_000 };
const leftOut = (meaning: string) => `left out, because no state of the service is ${meaning}`;
const aDay = 'at least 86400000 beside `onReversed`, which is a day in milliseconds';
const query = handler;

test.each<[name: string, definition: object, options: object, option: string, expected: string]>([
  ['a service that is none', {}, { service: { read: handler, states } }, 'service', aService],
  ['a schema in place of a service', {}, { service: transferCallbackSchema }, 'service', aService],
  ['a part of a service', {}, { service: { readCallback: handler } }, 'service', aService],
  ['null in place of a service', {}, { service: null }, 'service', aService],
  ['no `onReversed`', withOthers, { ...both, onReversed: undefined }, 'onReversed', 'a function'],
  ['an `onReversed` that is no function', withOthers, { ...both, onReversed: 'refund' }, 'onReversed', 'a function'],
  ['no `onOther`', withOthers, { ...both, onOther: undefined }, 'onOther', 'a function'],
  [
    'no `retentionMs` beside `onReversed`',
    withOthers,
    { ...both, retentionMs: undefined },
    'retentionMs',
    'given beside `onReversed`',
  ],
  // Sixty days in seconds: a copy an hour later would run `onSuccess` again.
  ['a `retentionMs` in seconds', withOthers, { ...both, retentionMs: 60 * 86_400 }, 'retentionMs', aDay],
  ['a `retentionMs` just under a day', withOthers, { ...both, retentionMs: 86_399_999 }, 'retentionMs', aDay],
  [
    'a transactional store that cannot claim both records',
    withOthers,
    { ...both, store: { claim: handler, transactional: true } },
    'store',
    'claims may have both records',
  ],
  [
    '`onReversed` of a service that reverses nothing',
    {},
    { onReversed: handler, retentionMs: 1e9 },
    'onReversed',
    leftOut('REVERSED'),
  ],
  ['`onOther` of a service without other events', {}, { onOther: handler }, 'onOther', leftOut('OTHER')],
])('a receiver is refused for %s', (_name, definition, options, option, expected) => {
  const error = thrownBy(() => serve(definition, options));
  expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', option, expected: containing(expected) });
  expect((error as Error).message).toContain(`Expected \`${option}\` to be `);
});

test('a receiver is made with the handlers that its service needs, and with `confirm: true` if it can be asked', () => {
  const { receiver } = serve({ ...withOthers, query }, { ...both, confirm: true, store: memoryStore() });
  expect(receiver.options).toMatchObject({ retentionMs: both.retentionMs, confirm: expect.any(Function) as object });
  const store = { claim: handler, transactional: true, claimsBoth: true };
  expect(() => serve(withOthers, { ...both, store })).not.toThrow();
  expect(serve({ query }, { confirm: true }).receiver.options.retentionMs).toBe(604_800_000);
  expect(serve(withOthers, { ...both, retentionMs: 86_400_000 }).receiver.options.retentionMs).toBe(86_400_000);
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
