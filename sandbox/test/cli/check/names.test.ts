// What `check` says of endpoints that know an event by another value than the ids that `read` reads.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startSandboxCli as start } from '../../../../test/cli/support.js';
import { serveAny } from './any-endpoint.js';
import { checkNamed, key, servePaystack } from './defined-support.js';
import { makeBooks } from './support.js';

const signed = { CALLBACK_SECRET: key };
const fast = ['--settle', '2'];

test('Paystack is known by its transfer_code, and by its merchant', async () => {
  const { book, count } = await makeBooks();
  const url = await servePaystack(book, {
    toKey: ({ data }, status) => `${data.transfer_code} ${status}`,
    before(callback) {
      const { integration } = (callback?.data ?? {}) as { integration?: { id: number } };
      return integration === undefined || integration.id === 463_433 ? undefined : 403;
    },
  });
  expect(await checkNamed('paystack', url, count, signed)).toMatchObject({ code: 0, wrong: [], less: [] });
});

/** A definition of one's own, whose events have a name that it does not read, with its samples. */
async function writeOwn(
  folder: string,
  read = '({ type, data }) => ({ state: type, id: data.id, externalId: data.reference })',
) {
  const source = `import { defineService } from 'transfer-sandbox';
    const states = { 'payout.paid': 'SUCCESS', 'payout.bounced': 'FAILED' };
    export const service = defineService({ read: ${read}, states });`;
  await writeFile(join(folder, 'own.mjs'), source);
  for (const [index, type] of ['payout.paid', 'payout.bounced'].entries()) {
    const payload = { event_id: `evt_${index}`, type, data: { id: 77, number: 77, reference: 'payout-17' } };
    await writeFile(join(folder, `${type}.json`), JSON.stringify(payload));
  }
  return ['--service', './own.mjs', '--success', 'payout.paid.json', '--failed', 'payout.bounced.json'];
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
