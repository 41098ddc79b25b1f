// One fault of an endpoint, and the one row that finds it.
import { createHmac } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseJson } from '../../../../src/lib/text.js';
import { objects, startSandboxCli as start } from '../../../../test/cli/support.js';
import { serveAny } from './any-endpoint.js';
import { checkNamed, key, servePaystack, type PaystackCallback } from './defined-support.js';
import { makeBooks, only, readText, serveHere, toChecked, type Book } from './support.js';

const fast = ['--settle', '2'];
const signed = { CALLBACK_SECRET: key };

/** Books each success and failure of Paystack once. Returns the status for a body that is none of both. */
function bookOnce(book: Book, otherwise: number): (body: string) => Promise<number> {
  const seen = new Set<string>();
  return async (body) => {
    const { event = '', data } = (parseJson(body) ?? {}) as Partial<PaystackCallback>;
    const [, word] = /^transfer\.(success|failed|reversed)$/.exec(event) ?? [];
    if (word === undefined || data === undefined) return event.startsWith('c') ? 200 : otherwise;
    const status = word.toUpperCase() as 'SUCCESS' | 'FAILED' | 'REVERSED';
    const isRefunded = status === 'REVERSED' && seen.has(`${data.reference} FAILED`);
    if (seen.has(`${data.reference} ${status}`) || isRefunded) return 200;
    seen.add(`${data.reference} ${status}`);
    await book({ data: { externalId: data.reference, status } });
    return 200;
  };
}

/** Serves what handles a body, and responds with the status. */
const serve = (handle: (body: string, signature: unknown) => Promise<number>): Promise<string> =>
  serveHere((request, response) => {
    void readText(request)
      .then((body) => handle(body, request.headers['x-paystack-signature']))
      .then((status) => response.writeHead(status).end());
  });

test('an endpoint that reads the first piece of a body loses a slow sender, at each attempt', async () => {
  const { book, count } = await makeBooks();
  const handle = bookOnce(book, 400);
  const url = await serveHere((request, response) => {
    request.once('data', (piece: Buffer) => {
      void handle(piece.toString()).then((status) => response.writeHead(status).end());
    });
  });
  const { wrong, trial } = await checkNamed('paystack', url, [...fast, ...only('slow-sender'), ...count], signed);
  expect(wrong).toEqual(['slow-sender']);
  expect(trial('slow-sender')?.responses).toEqual(Array(4).fill('400'));
});

test('an endpoint that acknowledges what it cannot parse loses half a body', async () => {
  const { book, count } = await makeBooks();
  const url = await serve(bookOnce(book, 200));
  const { wrong, trial } = await checkNamed('paystack', url, [...fast, ...only('malformed'), ...count], signed);
  expect(wrong).toEqual(['malformed']);
  expect(trial('malformed')?.because).toEqual(['It was acknowledged and never booked: it is lost.']);
});

const sign = (body: string): string => createHmac('sha512', key).update(body).digest('hex');

test('half a body has the signature of the whole: who verifies refuses it', async () => {
  const { book, count } = await makeBooks();
  const handle = bookOnce(book, 200);
  const url = await serve(async (body, signature) => (signature === sign(body) ? handle(body) : 401));
  const { wrong, trial } = await checkNamed('paystack', url, [...fast, ...only('malformed'), ...count], signed);
  expect([wrong, trial('malformed')?.responses]).toEqual([[], ['401', '200']]);
});

test('an endpoint that verifies what it has parsed is less strict, if it refuses another spelling with 401', async () => {
  const { book, count } = await makeBooks();
  const handle = bookOnce(book, 400);
  const toText = (body: string): string => JSON.stringify(parseJson(body) ?? null);
  const url = await serve(async (body, signature) => (signature === sign(toText(body)) ? handle(body) : 401));
  const { wrong, less } = await checkNamed('paystack', url, [...fast, ...only('other-spelling'), ...count], signed);
  expect([wrong, less]).toEqual([[], ['other-spelling']]);
  const other = await serve(async (body) => (body.includes('": ') ? 400 : handle(body)));
  const { trial } = await checkNamed('paystack', other, [...fast, ...only('other-spelling'), ...count], signed);
  expect(trial('other-spelling')).toMatchObject({ verdict: 'not seen', responses: Array(4).fill('400') as string[] });
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

test('a callback whose response was lost is wrong if it then gets 409 for ever, although it is booked', async () => {
  const { book, count } = await makeBooks();
  const url = await servePaystack(book, { toCopy: 409 });
  const { wrong, trial } = await checkNamed(
    'paystack',
    url,
    [...fast, ...only('response-lost', 'failed-lost'), ...count],
    signed,
  );
  expect(wrong).toEqual(['response-lost', 'failed-lost']);
  expect(trial('response-lost')?.responses).toEqual(['lost', '409', '409', '409', '409']);
});

test('a definition without FAILED has no row of a failure, and needs no sample of one', async () => {
  const { book, count, folder } = await makeBooks();
  const source = `import { defineService } from 'transfer-sandbox';
    export const service = defineService({
      read: ({ state, id, reference }) => ({ state, id, externalId: reference }),
      states: { paid: 'SUCCESS', returned: 'REVERSED' },
    });`;
  await writeFile(join(folder, 'own.mjs'), source);
  await writeFile(join(folder, 'paid.json'), JSON.stringify({ state: 'paid', id: 7, reference: 'payout-17' }));
  const url = await serveAny(book, ({ state, id, reference }: Partial<Record<string, string>>) =>
    state === 'paid' && id !== undefined && reference !== undefined ? [reference, reference, 'SUCCESS'] : 400,
  );
  const own = ['check', '--json', '--to', url, '--service', './own.mjs', '--success', 'paid.json', '--settle', '2'];
  const { code, out } = await start([...own, ...count], { cwd: folder }).ended;
  const { wrong, trial } = toChecked(code, objects(out));
  expect([code, wrong, trial('duplicate')?.verdict]).toEqual([0, [], 'right']);
  for (const name of ['failed', 'failed-burst', 'failed-reversed', 'flip', 'failed-after']) {
    expect(trial(name)?.because).toEqual(['The definition has no FAILED.']);
  }
  expect(trial('reversed')?.because).toEqual(['Give --reversed, a sample of a reversal.']);
});
