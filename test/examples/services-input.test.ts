import { randomInt } from 'node:crypto';
import { afterAll, expect, test } from 'vitest';
import { reconcileTransfers } from 'transfer-callbacks/client';
import { imitations, standIn, type Imitation } from './imitations.js';
import { memoryLedger } from './ledgers.js';
import { closeAll, mount } from './mount.js';

afterAll(closeAll);
afterAll(standIn.close);

const reversing = imitations.filter(({ reverses }) => reverses);
const asked = imitations.filter(({ asked: ids }) => ids.length > 0);

test.each(imitations)('$name: what a stranger sends is refused, and the service is still heard', async (imitation) => {
  const { send, booked } = await mount(imitation, memoryLedger());
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
  expect(await booked(transfer)).toEqual([]);
  expect(await send(sent)).toBe('200 processed');
});

test.each(imitations)(
  '$name: an unknown state and a missing id are invalid, with the id that was found',
  async (imitation) => {
    const { send, booked, outcomes } = await mount(imitation, memoryLedger());
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
    expect(await booked(transfer)).toEqual([]);
  },
);

test('mpesa: only a documented code is a success or a failure', () => {
  const mpesa = imitations.find(({ name }) => name === 'mpesa') ?? expect.fail('There is none.');
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
  const { send } = await mount(imitation, memoryLedger());
  const transfer = imitation.transfer();
  const replace = (leaf: unknown) => (String(leaf) === transfer.ids.id ? 2 ** 53 : leaf);
  expect(await send(transfer.send('success', { replace }))).toBe('400');
});

const withAmount = imitations.filter(({ name }) => name !== 'wise');
test.each(withAmount)('$name: a success without its amount is invalid', async (imitation) => {
  const { send, booked } = await mount(imitation, memoryLedger());
  const transfer = imitation.transfer();
  const { body } = transfer.send('success');
  const payload = imitation.row.isForm ? Object.fromEntries(new URLSearchParams(body)) : (JSON.parse(body) as object);
  const renamed = JSON.parse(JSON.stringify(payload).replace(/"(amount|TransactionAmount)"/g, '"sum"')) as object;
  expect(await send(transfer.sendPayload(renamed))).toBe('400');
  expect(await booked(transfer)).toEqual([]);
});

const ignoring = imitations.filter(({ sends }) => sends('ignored'));
test.each(ignoring)('$name: an event of no payout is acknowledged, if its sender is verified', async (imitation) => {
  const { send, outcomes } = await mount(imitation, memoryLedger());
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
    const { send, booked, outcomes } = await mount(imitation, memoryLedger());
    const transfer = imitation.transfer();
    expect(await send(transfer.send('pending'))).toBe('200 ignored');
    expect(outcomes[0]).toMatchObject(transfer.ids);
    expect(await send(transfer.send('success'))).toBe('200 processed');
    expect(await send(transfer.send('pending'))).toBe('200 ignored');
    expect(await booked(transfer)).toEqual(['paid']);
  },
);

test.each(asked)('$name: a run handles what is final, and leaves what is not or is unknown', async (imitation) => {
  const { receiver, booked } = await mount(imitation, memoryLedger());
  const [paid, open, unknown] = [imitation.transfer(), imitation.transfer(), imitation.transfer()];
  paid.become('SUCCESS');
  open.become('PENDING');
  unknown.become('unknown');
  const results: Record<string, string> = {};
  await reconcileTransfers({
    receiver,
    pending: [paid, open, unknown].map(({ ids: { id } }) => ({ id, createdAt: new Date(0) })),
    minAgeMs: 0,
    onProgress: ({ id, result }) => void (results[id] = result),
  });
  expect(results).toEqual({ [paid.ids.id]: 'processed', [open.ids.id]: 'pending', [unknown.ids.id]: 'unknown' });
  expect(await booked(paid)).toEqual(['paid']);
  expect(await booked(open)).toEqual([]);
});

test.each(reversing)('$name: of what is paid a run hands on the reversals only', async (imitation) => {
  const { receiver, send, booked } = await mount(imitation, memoryLedger());
  const [paid, reversed, lost] = [imitation.transfer(), imitation.transfer(), imitation.transfer()];
  for (const transfer of [paid, reversed]) expect(await send(transfer.send('success'))).toBe('200 processed');
  for (const transfer of [paid, lost]) transfer.become('SUCCESS');
  reversed.become('REVERSED');
  const items = [paid, reversed, lost].map(({ ids: { id } }) => ({ id, createdAt: new Date(0) }));
  await reconcileTransfers({ receiver, paid: items, minAgeMs: 0 });
  expect(await Promise.all([paid, reversed, lost].map(booked))).toEqual([['paid'], ['paid', 'given back'], []]);
});

test.each(asked)('$name: confirm lets through what the service says, and nothing else', async (imitation) => {
  const { send, booked } = await mount(imitation, memoryLedger(), { confirm: true });
  const [paid, failed, open] = [imitation.transfer(), imitation.transfer(), imitation.transfer()];
  paid.become('SUCCESS');
  failed.become('FAILED');
  open.become('PENDING');
  expect(await send(paid.send('failed'))).toBe('503');
  expect(await send(failed.send('success'))).toBe('503');
  expect(await send(open.send('success'))).toBe('503');
  expect(await send(imitation.transfer().send('success'))).toBe('503');
  for (const transfer of [paid, failed, open]) expect(await booked(transfer)).toEqual([]);
  expect(await send(paid.send('success'))).toBe('200 processed');
  expect(await send(failed.send('failed'))).toBe('200 processed');
});

test.each(reversing)('$name: confirm makes a late callback the reversal that it has read', async (imitation) => {
  const { send, booked } = await mount(imitation, memoryLedger(), { confirm: true });
  for (const late of ['success', 'failed', 'reversed'] as const) {
    const transfer = imitation.transfer();
    transfer.become('SUCCESS');
    expect(await send(transfer.send('reversed'))).toBe('503');
    transfer.become('REVERSED');
    expect(await send(transfer.send(late))).toBe('200 processed');
    expect(await send(transfer.send('reversed'))).toBe('200 duplicate');
    expect(await booked(transfer)).toEqual(['given back']);
  }
});

const silent = imitations.filter(({ asked: ids }) => ids.length === 0);
test.each(silent)('$name: it cannot be asked, and whoever tries hears so', async (imitation) => {
  await expect(mount(imitation, memoryLedger(), { confirm: true })).rejects.toThrow('neither keys nor a `query`');
  const { reconcile } = await mount(imitation, memoryLedger());
  await expect(reconcile('payout-1')).rejects.toThrow('one whose `service` can be asked');
});

function find(name: string): Imitation {
  return imitations.find((each) => each.name === name) ?? expect.fail(`There is no ${name}.`);
}

test('mpesa takes its code as a text, too, and a failure with one parameter only', async () => {
  const imitation = find('mpesa');
  const { send, booked } = await mount(imitation, memoryLedger());
  const [paid, failed] = [imitation.transfer(), imitation.transfer()];
  expect(await send(paid.send('success', { replace: (leaf) => (leaf === 0 ? '0' : leaf) }))).toBe('200 processed');
  expect(await send(paid.send('success'))).toBe('200 duplicate');
  const { Result } = JSON.parse(failed.send('failed').body) as { Result: object };
  const ResultParameters = { ResultParameter: { Key: 'BOCompletedTime', Value: 1 } };
  expect(await send(failed.sendPayload({ Result: { ...Result, ResultParameters } }))).toBe('200 processed');
  expect([await booked(paid), await booked(failed)]).toEqual([['paid'], ['refunded']]);
});

test('mtn sends by POST, too, and cinetpay finds its URL by GET', async () => {
  const mtn = await mount(find('mtn'), memoryLedger());
  const sent = find('mtn').transfer().send('success');
  expect(await mtn.send({ ...sent, method: 'POST' })).toBe('200 processed');
  const cinetpay = await mount(find('cinetpay'), memoryLedger());
  expect((await fetch(cinetpay.url + find('cinetpay').transfer().send('success').path)).status).toBe(200);
});

test('razorpayx acknowledges downtimes, and refuses a payout of an unknown name', async () => {
  const { send } = await mount(find('razorpayx'), memoryLedger());
  const transfer = find('razorpayx').transfer();
  expect(await send(transfer.sendPayload({ event: 'payout.downtime.started', payload: {} }))).toBe('200 ignored');
  expect(await send(transfer.sendPayload({ event: 'payout.handled', payload: {} }))).toBe('400');
});

test('paystack is asked by its id or by a reference of yours that has other characters than digits', async () => {
  const { reconcile } = await mount(find('paystack'), memoryLedger());
  expect(await reconcile(String(randomInt(2 ** 40)))).toBe('unknown');
});
