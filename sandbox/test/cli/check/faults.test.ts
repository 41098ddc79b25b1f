// One fault of an endpoint of another service, and the rows that find it.
import { expect, test } from 'vitest';
import { parseJson } from '../../../../src/lib/text.js';
import { startSandboxCli as start } from '../../../../test/cli/support.js';
import { checkPaystack, hmac, type Ways } from './by-hand.js';
import { checkNamed, key, privateKeys } from './defined-support.js';
import { checkIn, makeBooks, only, serveAny, writeFiles } from './support.js';
import { serveForTest } from '../../../../test/support/servers/serve-for-test.js';

const fast = ['--settle', '2'];
const signed = { CALLBACK_SECRET: key };

test('an endpoint that reads the first piece of a body loses a slow sender, at each attempt', async () => {
  const url = await serveForTest((request, response) => {
    request.once('data', (piece: Buffer) => {
      response.writeHead(parseJson(piece.toString()) === undefined ? 400 : 200).end();
    });
  });
  const { wrong, trial } = await checkNamed('paystack', url, [...fast, ...only('slow-sender')], signed);
  expect(wrong).toEqual(['slow-sender']);
  expect(trial('slow-sender')?.responses).toEqual(Array(4).fill('400'));
});

test.each<[what: string, ways: Ways, row: string, expected: object]>([
  [
    'an endpoint that acknowledges what it cannot parse loses half a body',
    { believes: () => true, before: (body) => (parseJson(body) === undefined ? 200 : undefined) },
    'malformed',
    { verdict: 'wrong', because: ['It was acknowledged and never booked: it is lost.'] },
  ],
  [
    'half a body has the signature of the whole: who verifies refuses it',
    {},
    'malformed',
    { verdict: 'right', responses: ['401', '200'] },
  ],
  [
    'an endpoint that verifies what it has parsed refuses another spelling with 401, and is less strict',
    {
      believes: (body, headers) =>
        headers['x-paystack-signature'] === hmac('sha512', JSON.stringify(parseJson(body) ?? null)),
    },
    'other-spelling',
    { verdict: 'less strict' },
  ],
  [
    'an endpoint that refuses another spelling with 400 is not judged by it',
    { before: (body) => (body.includes('": ') ? 400 : undefined) },
    'other-spelling',
    { verdict: 'not seen', responses: Array(4).fill('400') as string[] },
  ],
])('%s', async (_what, ways, row, expected) => {
  const { trial } = await checkPaystack(ways, ...fast, ...only(row));
  expect(trial(row)).toMatchObject(expected);
});

test.each(['eventType', 'status'])(
  'a state is unknown in the event and in the data: who reads %s books nothing',
  async (name) => {
    const { book, count } = await makeBooks();
    interface Monnify {
      eventType: string;
      eventData: { status: string; reference: string };
    }
    const url = await serveAny(book, ({ eventType, eventData: { status, reference } }: Monnify) => {
      const [word] = /^(?:SUCCESS|FAILED|REVERSED)/.exec(name === 'status' ? status : eventType) ?? [];
      return word === undefined ? undefined : [reference, reference, word];
    });
    const { trial } = await checkNamed('monnify', url, [...fast, ...only('unknown-state'), ...count], signed);
    expect(trial('unknown-state')).toMatchObject({ verdict: 'less strict', bookings: 0 });
  },
);

test('a state of Wise that follows a success, and is refunded too early, is found', async () => {
  const { book, count } = await makeBooks();
  const states: Record<string, string> = {
    outgoing_payment_sent: 'SUCCESS',
    cancelled: 'FAILED',
    funds_refunded: 'REVERSED',
    bounced_back: 'REVERSED',
  };
  interface Wise {
    data: { resource: { id: number }; current_state: string };
  }
  const url = await serveAny(book, ({ data }: Wise) => {
    const status = states[data.current_state];
    return status === undefined ? 400 : [String(data.resource.id), String(data.resource.id), status];
  });
  const { trial } = await checkNamed('wise', url, [...fast, ...count], { CALLBACK_SECRET: privateKeys.wise ?? '' });
  expect(trial('pending')).toMatchObject({ verdict: 'wrong', because: ['A payout without an outcome was booked.'] });
});

interface Razorpay {
  event: string;
  payload: { payout: { entity: { reference_id: string } } };
}

/** Books a payout of RazorpayX by its event, and what `elsewhere` returns of any other. */
const readRazorpay =
  (elsewhere: (event: string) => string | undefined) =>
  ({ event, payload }: Razorpay) => {
    const { reference_id: id } = payload.payout.entity;
    const [, end = ''] = /^payout\.(processed|reversed|failed)$/.exec(event) ?? [];
    const status = end === '' ? elsewhere(event) : end === 'processed' ? 'SUCCESS' : end.toUpperCase();
    return status === undefined ? undefined : ([id, id, status] as const);
  };

test.each<[what: string, elsewhere: (event: string) => string | undefined, wrong: string[]]>([
  ['refunds what is no success', (event) => (event.startsWith('payout.') ? 'FAILED' : undefined), ['unknown-state']],
  ['books it as paid', (event) => (event === 'payout.initiated' ? 'SUCCESS' : undefined), []],
])('a payout on its way is booked by an endpoint that %s', async (_what, elsewhere, others) => {
  const { book, count } = await makeBooks();
  const url = await serveAny(book, readRazorpay(elsewhere));
  const { wrong, trial } = await checkNamed('razorpayx', url, [...fast, '--skip', 'forged', ...count], signed);
  expect([wrong, trial('pending')?.because]).toEqual([
    ['pending', ...others],
    ['A payout without an outcome was booked.'],
  ]);
});

test.each<[what: string, ways: Ways, wrong: string[]]>([
  ['each reversal counts', { forgets: 'REVERSED' }, ['reversed', 'reversed-burst', 'reversed-first']],
  [
    'reversals are dropped',
    { books: (write, status) => (status === 'REVERSED' ? undefined : write()) },
    ['reversed', 'reversed-burst', 'reversed-first', 'success-again'],
  ],
])('where %s, the rows of a reversal are wrong', async (_what, ways, wrong) => {
  expect(await checkPaystack(ways, ...fast)).toMatchObject({ code: 1, wrong, less: [] });
});

test('a copy that gets 409 for ever is wrong, although it is booked', async () => {
  const { wrong, trial } = await checkPaystack({ toCopy: 409 }, ...fast);
  expect(wrong).toEqual(
    expect.arrayContaining(['duplicate', 'response-lost', 'failed-duplicate', 'failed-lost']) as string[],
  );
  expect(trial('response-lost')?.responses).toEqual(['lost', '409', '409', '409', '409']);
});

test('409 while a queue books is right', { timeout: 300_000 }, async () => {
  const until = new Map<string, number>();
  const ways: Ways = {
    before(body) {
      const { event, data } = (parseJson(body) ?? {}) as { event?: string; data?: { reference?: string } };
      const name = `${event} ${data?.reference}`;
      const now = Date.now();
      const ends = until.get(name);
      if (ends === undefined && data !== undefined) until.set(name, now + 2_000);
      return ends !== undefined && now < ends ? 409 : undefined;
    },
    books(write) {
      setTimeout(() => void write(), 1_500);
      return undefined;
    },
  };
  expect(await checkPaystack(ways, '--settle', '4')).toMatchObject({ wrong: [] });
});

/** A definition of one's own, whose events have a name that it does not read, with its samples. */
async function writeOwn(
  folder: string,
  read = '({ type, data }) => ({ state: type, id: data.id, externalId: data.reference })',
) {
  const source = `import { defineService } from 'transfer-sandbox';
    const states = { 'payout.paid': 'SUCCESS', 'payout.bounced': 'FAILED' };
    export const service = defineService({ read: ${read}, states });`;
  const data = { id: 77, number: 77, reference: 'payout-17' };
  const [success, failed] = ['payout.paid', 'payout.bounced'].map((type, at) => ({
    event_id: `evt_${at}`,
    type,
    data,
  }));
  await writeFiles(folder, { 'own.mjs': source, 'paid.json': success, 'bounced.json': failed });
  return ['--service', './own.mjs', '--success', 'paid.json', '--failed', 'bounced.json'];
}

interface Own {
  event_id: string;
  type: string;
  data: { number: number; reference: string };
}
const own = ({ event_id: name, type, data }: Own) => {
  const status = { 'payout.paid': 'SUCCESS', 'payout.bounced': 'FAILED' }[type];
  return status === undefined ? 400 : ([name, data.reference, status] as const);
};

test('an own service says by what its events are known: without that a row is not seen, and names the value', async () => {
  const { book, count, folder } = await makeBooks();
  const service = await writeOwn(folder);
  const url = await serveAny(book, own);
  const run = async (...args: string[]) => {
    return start(['check', '--to', url, ...service, ...fast, ...count, ...args], { cwd: folder }).ended;
  };
  const blind = await run();
  expect([blind.code, blind.out]).toEqual([2, expect.not.stringContaining('✗')]);
  expect(blind.out.replaceAll(/\s+/g, ' ')).toContain('Give --event-id event_id, or --transfer-id event_id.');
  const seen = await run('--event-id', 'event_id');
  expect([seen.code, seen.out]).toEqual([0, expect.not.stringContaining('✗')]);
  const wrong = await run('--event-id', 'data.code');
  expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining('or header:NAME, got data.code.')]);
});

test('a definition that ignores each event that it does not know is told what the page says', async () => {
  const { book, count, folder } = await makeBooks();
  const read =
    '({ type, data }) => (type in states ? { state: type, id: data.id, externalId: data.reference } : { ignored: type })';
  const service = await writeOwn(folder, read);
  const url = await serveAny(book, (payload: Own) => (own(payload) === 400 ? undefined : own(payload)));
  const { out } = await start(['check', '--to', url, ...service, '--event-id', 'event_id', ...count], { cwd: folder })
    .ended;
  const words = out.replaceAll(/\s+/g, ' ');
  expect(words).toMatch(
    /! unknown-state .*The definition ignores each event that it does not know: in docs\/services\.md/,
  );
});

test('a definition without FAILED has no row of a failure, and needs no sample of one', async () => {
  const { book, count, folder } = await makeBooks();
  const source = `import { defineService } from 'transfer-sandbox';
    export const service = defineService({
      read: ({ state, id, reference }) => ({ state, id, externalId: reference }),
      states: { paid: 'SUCCESS', returned: 'REVERSED' },
    });`;
  await writeFiles(folder, { 'own.mjs': source, 'paid.json': { state: 'paid', id: 7, reference: 'payout-17' } });
  const url = await serveAny(book, ({ state, id, reference }: Partial<Record<string, string>>) =>
    state === 'paid' && id !== undefined && reference !== undefined ? [reference, reference, 'SUCCESS'] : 400,
  );
  const service = ['--service', './own.mjs', '--success', 'paid.json'];
  const { code, wrong, trial } = await checkIn({ cwd: folder }, url, ...service, ...fast, ...count);
  expect([code, wrong, trial('duplicate')?.verdict]).toEqual([0, [], 'right']);
  for (const name of ['failed', 'failed-burst', 'failed-reversed', 'flip', 'failed-after'])
    expect(trial(name)?.because).toEqual(['The definition has no FAILED.']);
  expect(trial('reversed')?.because).toEqual(['Give --reversed, a sample of a reversal.']);
});
