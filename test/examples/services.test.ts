// That each definition reads what its service sends and responds. What a receiver then does, on every store: test/stores.
import { randomInt } from 'node:crypto';
import express from 'express';
import {
  memoryStore,
  transferCallbackReceiver,
  transferCallbackRouter,
  type ReceiverOptions,
  type TransferCallbackOutcome,
} from 'transfer-callbacks';
import { reconcileTransfer } from 'transfer-callbacks/client';
import { afterAll, expect, test } from 'vitest';
import { post } from '../support/helpers/post.js';
import { serveForTest } from '../support/servers/serve-for-test.js';
import { imitations, standIn, type Imitation, type Sent, type ServiceCallback, type Transfer } from './imitations.js';

afterAll(standIn.close);

/** What the handlers book. */
const entries = { SUCCESS: 'paid', FAILED: 'refunded', REVERSED: 'reversed' } as const;

/** Mounts a service as its row in docs/services.md tells, until the test has ended. */
async function mount({ name, service, reverses, row }: Imitation) {
  const outcomes: TransferCallbackOutcome[] = [];
  const books: { readonly externalId: string; readonly entry: string }[] = [];
  const handle = ({ data: { externalId, status } }: ServiceCallback): void => {
    books.push({ externalId, entry: entries[status] });
  };
  const receiver = transferCallbackReceiver({
    ...{ store: memoryStore(), service, onSuccess: handle, onFailed: handle, logger: false },
    ...(reverses && { onReversed: handle, retentionMs: 60 * 86_400_000 }),
    onOutcome: (outcome: TransferCallbackOutcome) => outcomes.push(outcome),
  } as ReceiverOptions<ServiceCallback, unknown>);
  const app = express();
  const path = `/callbacks/${name}${row.sign === undefined ? '/:token' : ''}`;
  const router = transferCallbackRouter({ receiver });
  for (const method of row.methods ?? ['post']) app[method](path, ...(row.before ?? []), router);
  app.get(path, (_request, response) => void response.sendStatus(200));
  const url = await serveForTest(app);
  const send = async ({ path, body, ...sent }: Sent): Promise<string> => {
    const response = await post(url + path, body, sent);
    const { outcome = '' } = JSON.parse(response.body) as { outcome?: string };
    return `${response.status} ${outcome}`.trim();
  };
  return {
    ...{ url, outcomes, send },
    booked: ({ ids }: Transfer) => books.filter((each) => each.externalId === ids.externalId).map(({ entry }) => entry),
    reconcile: async (id: string) => (await reconcileTransfer({ receiver, id })).result,
  };
}

const reversing = imitations.filter(({ reverses }) => reverses);
const asked = imitations.filter(({ asked: ids }) => ids.length > 0);

test.each(imitations)(
  '$name: a success and a failure are booked once, and no other outcome after it',
  async (imitation) => {
    const { send, booked } = await mount(imitation);
    for (const [first, other, entry] of [
      ['success', 'failed', 'paid'],
      ['failed', 'success', 'refunded'],
    ] as const) {
      const transfer = imitation.transfer();
      expect(await send(transfer.send(first))).toBe('200 processed');
      expect(await send(transfer.send(first))).toBe('200 duplicate');
      expect(await send(transfer.send(other))).toBe('422');
      expect(booked(transfer)).toEqual([entry]);
    }
  },
);

test.each(reversing)('$name: each transfer is refunded once, in each order of its callbacks', async (imitation) => {
  const { send, booked } = await mount(imitation);
  for (const { sent, booking } of [
    { sent: ['success', 'reversed'], booking: ['paid', 'reversed'] },
    { sent: ['reversed', 'success', 'failed'], booking: ['reversed'] },
    { sent: ['failed', 'reversed'], booking: ['refunded'] },
  ] as const) {
    const transfer = imitation.transfer();
    for (const kind of [...sent, ...sent]) expect(await send(transfer.send(kind))).toMatch(/^200 /);
    expect(booked(transfer)).toEqual(booking);
  }
});

test.each(asked)(
  '$name: what never came is reconciled by each id that the service takes, and what is open or unknown is left',
  async (imitation) => {
    const { send, booked, reconcile } = await mount(imitation);
    const kinds = {
      SUCCESS: 'success',
      FAILED: 'failed',
      ...(imitation.reverses && { REVERSED: 'reversed' as const }),
    };
    for (const name of imitation.asked) {
      for (const [status, kind] of Object.entries(kinds) as [keyof typeof entries, 'success'][]) {
        const transfer = imitation.transfer();
        transfer.become(status);
        expect(await reconcile(transfer.ids[name])).toBe('processed');
        expect(await send(transfer.send(kind))).toBe('200 duplicate');
        expect(booked(transfer)).toEqual([entries[status]]);
      }
      for (const status of ['PENDING', 'unknown'] as const) {
        const transfer = imitation.transfer();
        transfer.become(status);
        expect(await reconcile(transfer.ids[name])).toBe(status.toLowerCase());
        expect(booked(transfer)).toEqual([]);
      }
    }
  },
);

test.each(imitations)('$name: what a stranger sends is refused, and the service is still heard', async (imitation) => {
  const { send, booked } = await mount(imitation);
  const transfer = imitation.transfer();
  const { flip } = imitation.row;
  const sent = transfer.send('success');
  const { 'content-type': type = '' } = sent.headers;
  const forgeries = [
    transfer.send('success', { isStranger: true }),
    ...(imitation.row.sign === undefined ? [] : [{ ...sent, headers: { 'content-type': type } }]),
    ...(flip === undefined ? [] : [{ ...sent, body: sent.body.replace(...flip) }]),
    { ...transfer.send('success', { isStranger: true }), body: '{' },
  ];
  for (const forgery of forgeries) expect(await send(forgery)).toBe('401');
  expect(new Set(forgeries.map(({ body, path, headers }) => body + path + JSON.stringify(headers))).size).toBe(
    forgeries.length,
  );
  expect(booked(transfer)).toEqual([]);
  expect(await send(sent)).toBe('200 processed');
});

test.each(imitations)(
  '$name: an unknown state and a missing id are invalid, with the id that was found',
  async (imitation) => {
    const { send, booked, outcomes } = await mount(imitation);
    const { strange, externalId } = imitation.row;
    const transfer = imitation.transfer();
    const without = (text: string) => (leaf: unknown) => (String(leaf) === text ? undefined : leaf);
    const [text, other] = strange;
    const wrong = [
      transfer.send('success', { replace: (leaf) => (String(leaf) === text ? (other ?? undefined) : leaf) }),
      transfer.send('success', { replace: without(transfer.ids.id) }),
      ...(externalId === undefined ? [] : [transfer.send('success', { replace: without(transfer.ids.externalId) })]),
    ];
    for (const sent of wrong) expect(await send(sent)).toBe('400');
    expect(outcomes.map((ended) => ended.outcome === 'invalid' && ended.verified)).toEqual(wrong.map(() => true));
    expect(outcomes[0]).toMatchObject(transfer.ids);
    expect(booked(transfer)).toEqual([]);
  },
);

test('mpesa: only a documented code is a success or a failure', () => {
  const mpesa = find('mpesa');
  const read = (ResultCode: unknown): string => {
    const Result = { ResultCode, ConversationID: 'AG_1', OriginatorConversationID: 'p-1' };
    const parameter = { Key: 'TransactionAmount', Value: 10 };
    const given = { Result: { ...Result, ResultParameters: { ResultParameter: [parameter] } } };
    const reading = mpesa.service.readCallback(given);
    return reading.kind === 'callback' ? String(reading.fields.status) : reading.kind;
  };
  expect([0, '0'].map(read)).toEqual(['SUCCESS', 'SUCCESS']);
  expect([1, '1', 2001, '2001', 'SFC_IC0003'].map(read)).toEqual(Array(5).fill('FAILED'));
  const strange = ['0 ', ' 0', '0s', '00', 'x', '', -1, 1.5, true, false, null, undefined, {}, [], [0], [1], NaN];
  expect(strange.map(read)).toEqual(strange.map(() => 'invalid'));
});

const withNumbers = imitations.filter(({ row }) => typeof row.id === 'number');
test.each(withNumbers)('$name: a number that JavaScript does not hold exactly is no id', async (imitation) => {
  const { send } = await mount(imitation);
  const transfer = imitation.transfer();
  const replace = (leaf: unknown) => (String(leaf) === transfer.ids.id ? 2 ** 53 : leaf);
  expect(await send(transfer.send('success', { replace }))).toBe('400');
});

const withAmount = imitations.filter(({ name }) => name !== 'wise');
test.each(withAmount)('$name: a success without its amount is invalid', async (imitation) => {
  const { send, booked } = await mount(imitation);
  const transfer = imitation.transfer();
  const { body } = transfer.send('success');
  const payload = imitation.row.isForm ? Object.fromEntries(new URLSearchParams(body)) : (JSON.parse(body) as object);
  const renamed = JSON.parse(JSON.stringify(payload).replace(/"(amount|TransactionAmount)"/g, '"sum"')) as object;
  expect(await send(transfer.sendPayload(renamed))).toBe('400');
  expect(booked(transfer)).toEqual([]);
});

const ignoring = imitations.filter(({ sends }) => sends('ignored'));
test.each(ignoring)('$name: an event of no payout is acknowledged, if its sender is verified', async (imitation) => {
  const { send, outcomes } = await mount(imitation);
  const transfer = imitation.transfer();
  expect(await send(transfer.send('ignored', { isStranger: true }))).toBe('401');
  expect(await send(transfer.send('ignored'))).toBe('200 ignored');
  expect(await send(transfer.send('ignored'))).toBe('200 ignored');
  expect(outcomes.map((ended) => ended.outcome === 'ignored' && ended.count)).toEqual([false, 1, 2]);
});

const pending = imitations.filter(({ sends }) => sends('pending'));
test.each(pending)(
  '$name: what is not final is acknowledged, and leaves the transfer to its outcome',
  async (imitation) => {
    const { send, booked, outcomes } = await mount(imitation);
    const transfer = imitation.transfer();
    expect(await send(transfer.send('pending'))).toBe('200 ignored');
    expect(outcomes[0]).toMatchObject(transfer.ids);
    expect(await send(transfer.send('success'))).toBe('200 processed');
    expect(await send(transfer.send('pending'))).toBe('200 ignored');
    expect(booked(transfer)).toEqual(['paid']);
  },
);

function find(name: string): Imitation {
  return imitations.find((each) => each.name === name) ?? expect.fail(`There is no ${name}.`);
}

test('mpesa: a failure with one parameter only is booked', async () => {
  const { send, booked } = await mount(find('mpesa'));
  const failed = find('mpesa').transfer();
  const { Result } = JSON.parse(failed.send('failed').body) as { Result: object };
  const ResultParameters = { ResultParameter: { Key: 'BOCompletedTime', Value: 1 } };
  expect(await send(failed.sendPayload({ Result: { ...Result, ResultParameters } }))).toBe('200 processed');
  expect(booked(failed)).toEqual(['refunded']);
});

test('mtn sends by POST, too, and cinetpay finds its URL by GET', async () => {
  const mtn = await mount(find('mtn'));
  const sent = find('mtn').transfer().send('success');
  expect(await mtn.send({ ...sent, method: 'POST' })).toBe('200 processed');
  const cinetpay = await mount(find('cinetpay'));
  expect((await fetch(cinetpay.url + find('cinetpay').transfer().send('success').path)).status).toBe(200);
});

test('razorpayx acknowledges downtimes, and refuses a payout of an unknown name', async () => {
  const { send } = await mount(find('razorpayx'));
  const transfer = find('razorpayx').transfer();
  expect(await send(transfer.sendPayload({ event: 'payout.downtime.started', payload: {} }))).toBe('200 ignored');
  expect(await send(transfer.sendPayload({ event: 'payout.handled', payload: {} }))).toBe('400');
});

test('paystack is asked by its id or by a reference of yours that has other characters than digits', async () => {
  const { reconcile } = await mount(find('paystack'));
  expect(await reconcile(String(randomInt(2 ** 40)))).toBe('unknown');
});
