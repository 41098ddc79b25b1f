import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { transferScenarios } from 'transfer-sandbox';
import { head } from '../../../test/support/helpers/sockets.js';
import { create, get, play, query, readStream, startMerchant, startSandbox } from './support.js';

test('the stream begins with the list, the newest transfer and the settings, and then sends what changes', async () => {
  const { url } = await startMerchant();
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url, callbackHeaders: { 'X-Token': 'a' } });
  await create(sandbox, { externalId: 'burst-1' });
  const { messages, page } = await readStream(sandbox);
  expect(messages[0]).toMatchObject({
    total: 1,
    matching: 1,
    rows: [{ externalId: 'burst-1', state: 'pending', place: 1, text: 'final' }],
    shown: { externalId: 'burst-1', state: 'pending', from: 0, events: [{ type: 'created' }] },
    clock: { speed: 0, nextMs: Date.parse('2026-01-15T10:30:01.000Z') },
    settings: {
      apiKey: 'sandbox-key',
      apiSecret: 'sandbox-secret',
      callbackUrl: url,
      callbackHeaders: { 'X-Token': 'a' },
      scenarios: transferScenarios,
    },
  });
  await sandbox.advance(1_000);
  const acknowledged = expect.stringMatching(/^acknowledged/) as string;
  await expect.poll(page).toMatchObject({ shown: { delivered: true, underWay: 0 }, rows: [{ text: acknowledged }] });
  expect(page().shown?.events.map(({ type }) => type)).toEqual([
    ...['created', 'final', ...Array<string>(10).fill('attempt'), 'acknowledged'],
  ]);
  expect(messages.flatMap(({ said = [] }) => said)).toEqual(['burst-1: 10 attempts, 10 got 200']);
});

test('events are sent from an index: 300 resends of one transfer that is shown take less than 5 MB', async () => {
  const { sandbox } = await play('success', (_received, _count, response) => {
    response.writeHead(500).end('x'.repeat(4_096));
  });
  await sandbox.advance(1_000);
  const { received, page } = await readStream(sandbox);
  for (let resent = 0; resent < 300; resent += 1) await sandbox.resend('one');
  await expect.poll(() => page().shown?.events).toHaveLength(sandbox.transfers()[0]?.events.length ?? 0);
  expect(sandbox.attempts).toHaveLength(301);
  expect(received.length).toBeLessThan(5_000_000);
});

test('a transfer is found among all of them by what it is and by what became of it', async () => {
  const { url } = await startMerchant((_received, count, response) => {
    response.writeHead(count === 1 ? 503 : 200).end('{"message":"Closed for the night"}');
  });
  const sandbox = await startSandbox({ clock: 'manual', seed: 1, callbackUrl: url });
  await create(sandbox, { externalId: 'Needle', reference: 'order 77', amount: 4_711, provider: 'Orange' });
  await sandbox.advance(1_000);
  // The address is searched, too: a port by chance may have any of these digits.
  const callbackUrl = 'http://localhost/callbacks';
  for (let made = 0; made < 250; made += 1) await create(sandbox, { externalId: `hay-${made}`, callbackUrl });
  for (const find of ['needle', ' NEEDLE ', 'order+77', '4711', 'orange', '503', 'for+the+night', 'attempt 2']) {
    const { page } = await readStream(sandbox, `find=${find}`);
    expect(page(), find).toMatchObject({
      total: 251,
      matching: 1,
      listed: ['Needle'],
      shown: { externalId: 'Needle' },
    });
  }
  const { page } = await readStream(sandbox, 'find=nothing');
  expect(page()).toMatchObject({ total: 251, matching: 0, listed: [], shown: { externalId: 'hay-249' } });
});

test('the list is narrowed by outcome, and a transfer leaves it or comes when its outcome changes', async () => {
  const { url } = await startMerchant(({ body }, count, response) => {
    const isRefused = body.includes('"refused') || (body.includes('"flip') && body.includes('SUCCESS'));
    response.writeHead(isRefused && count < 10 ? 422 : 200).end();
  });
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url });
  for (const externalId of ['success-1', 'refused-2', 'flip-3', 'lost-attempts-4', 'no-callback-5']) {
    await create(sandbox, { externalId });
  }
  const lists = {
    acknowledged: await readStream(sandbox, 'outcome=acknowledged'),
    refused: await readStream(sandbox, 'outcome=refused'),
    waiting: await readStream(sandbox, 'outcome=waiting'),
    contradicted: await readStream(sandbox, 'outcome=contradicted'),
  };
  const show = () => Object.fromEntries(Object.entries(lists).map(([name, { page }]) => [name, page().listed]));
  const everything = ['no-callback-5', 'lost-attempts-4', 'flip-3', 'refused-2', 'success-1'];
  expect(show()).toEqual({ acknowledged: [], refused: [], waiting: everything, contradicted: [] });
  await sandbox.advance(12_000);
  await expect.poll(show).toEqual({
    acknowledged: ['success-1'],
    refused: ['flip-3', 'refused-2'],
    waiting: ['no-callback-5', 'lost-attempts-4'],
    contradicted: ['flip-3'],
  });
  await sandbox.advance(600_000);
  await expect.poll(show).toEqual({
    acknowledged: ['lost-attempts-4', 'flip-3', 'refused-2', 'success-1'],
    refused: [],
    waiting: ['no-callback-5'],
    contradicted: ['flip-3'],
  });
});

test('a page is sent the transfer that it names, however old, or none', async () => {
  const sandbox = await startSandbox({ clock: 'manual' });
  await create(sandbox, { externalId: 'first' });
  for (let made = 0; made < 201; made += 1) await create(sandbox, {});
  const { id } = sandbox.transfers()[0] ?? expect.fail('no transfer');
  const { page } = await readStream(sandbox, `id=${id}`);
  expect(page().shown).toMatchObject({ externalId: 'first', events: [{ type: 'created' }] });
  await query(sandbox, 'first');
  await expect.poll(() => page().shown?.events).toHaveLength(2);
  const { messages } = await readStream(sandbox, 'id=unknown');
  expect(messages[0]?.shown).toBeNull();
});

test('the stream accepts 20 readers, and another one when one has left', async () => {
  const sandbox = await startSandbox();
  const readers = [];
  for (let count = 0; count < 20; count += 1) readers.push(await readStream(sandbox));
  const events = `${String(sandbox.consoleUrl)}events`;
  expect((await get(events)).status).toBe(503);
  readers[0]?.leave();
  await vi.waitFor(async () => {
    const { messages } = await readStream(sandbox);
    expect(messages).toHaveLength(1);
  });
});

test('a reader that has stopped reading fills no memory, and is sent what it has missed when it reads on', async () => {
  const sandbox = await startSandbox({ clock: 'manual' });
  await create(sandbox, { externalId: 'x'.repeat(90_000) });
  const { id } = sandbox.transfers()[0] ?? expect.fail('no transfer');
  const { port } = new URL(sandbox.baseUrl);
  const socket = connect(Number(port), '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  socket.write(head(`${String(sandbox.consoleUrl)}events`, {}, 'GET'));
  await once(socket, 'readable');
  const watching = await readStream(sandbox, 'id=none');
  // Each change is 90 kB. The sockets of both sides keep a few megabytes.
  let text = '';
  for (let asked = 1; asked <= 220; asked += 1) {
    const known = watching.messages.length;
    await query(sandbox, id);
    await vi.waitUntil(() => watching.messages.length > known, { interval: 5 });
  }
  socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  await expect.poll(() => text).toContain('"times":220');
  expect(text.length).toBeLessThan(15_000_000);
});

test('the stream sends a comment each 15 s while nothing happens', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const { consoleUrl } = await startSandbox({ clock: 'manual' });
  const { body } = await fetch(`${String(consoleUrl)}events`);
  let text = '';
  for await (const chunk of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    if (text === '') vi.advanceTimersByTime(30_000);
    text += chunk;
    if (text.includes('\n\n:\n\n:\n\n')) break;
  }
  expect(text).toMatch(/^retry: 1000\ndata: \{/);
});
