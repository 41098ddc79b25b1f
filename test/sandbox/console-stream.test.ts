import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { transferSandbox, transferScenarios } from 'transfer-callbacks/sandbox';
import { manualClock } from '../../src/sandbox/clock.js';
import { ConsoleStream } from '../../src/sandbox/stream.js';
import { serve } from '../support/serve.js';
import { head } from '../support/sockets.js';
import { create, get, readStream, soon, startMerchant, startSandbox } from './support.js';

describe('the stream', () => {
  test('the stream begins with the state, and sends each changed transfer once per turn', async () => {
    const { url } = await startMerchant();
    const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url, callbackHeaders: { 'X-Token': 'a' } });
    await create(sandbox, { externalId: 'burst-1' });
    const { messages } = await readStream(sandbox);
    expect(messages[0]?.data).toMatchObject({
      total: 1,
      transfers: [{ externalId: 'burst-1', state: 'pending', events: [{ type: 'created' }] }],
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
    await vi.waitFor(() => {
      const last = messages.findLast(({ event }) => event === 'transfer');
      expect(last?.data).toMatchObject({ delivered: true, underWay: 0 });
    }, soon);
    const withAttempts = messages.filter(
      ({ event, data }) => event === 'transfer' && JSON.stringify(data).includes('"attempt"'),
    );
    expect(withAttempts).toHaveLength(1);
    expect(sandbox.attempts).toHaveLength(10);
  });

  test('the stream sends the new time when nothing else has changed', async () => {
    const sandbox = await startSandbox({ clock: 'manual' });
    const { messages } = await readStream(sandbox);
    await sandbox.advance(60_000);
    await vi.waitFor(() => {
      expect(messages.at(-1)).toMatchObject({
        event: 'clock',
        data: { nowMs: Date.parse('2026-01-15T10:31:00.000Z') },
      });
    }, soon);
  });

  test('the stream begins with the newest 200 transfers and their total number', async () => {
    const sandbox = await startSandbox({ clock: 'manual' });
    for (let made = 0; made < 210; made += 1) await create(sandbox, { externalId: `t-${made}` });
    const { messages } = await readStream(sandbox);
    const transfers = messages[0]?.data.transfers as { externalId: string }[];
    expect([messages[0]?.data.total, transfers.length, transfers[0]?.externalId]).toEqual([210, 200, 't-10']);
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
    }, soon);
  });

  test('the stream ends when the sandbox closes', async () => {
    const sandbox = await transferSandbox();
    const { ended } = await readStream(sandbox);
    await sandbox.close();
    await ended;
  });

  test('the stream disconnects a reader that has stopped reading', async () => {
    const sandbox = await startSandbox({ clock: 'manual' });
    const { port } = new URL(sandbox.baseUrl);
    const socket = connect(Number(port), '127.0.0.1');
    let ended = false;
    socket.on('close', () => (ended = true)).on('error', () => undefined);
    await once(socket, 'connect');
    socket.write(head(`${String(sandbox.consoleUrl)}events`, {}, 'GET'));
    await once(socket, 'readable');
    // It reads nothing; each query makes a message with the whole transfer, of 100 kB.
    await create(sandbox, { externalId: 'x'.repeat(50_000) });
    const { id } = sandbox.transfers()[0] ?? expect.fail('no transfer');
    const { keys, baseUrl } = sandbox;
    const headers = { 'x-api-key': keys.valid.apiKey, 'x-api-secret': keys.valid.apiSecret };
    for (let asked = 0; asked < 400; asked += 1) {
      await (await fetch(`${baseUrl}/transactions/${id}`, { headers })).arrayBuffer();
    }
    socket.resume();
    await vi.waitFor(() => {
      expect(ended).toBe(true);
    }, soon);
  });

  test('the stream sends comments while nothing happens, until the last reader has left', async () => {
    const stream = new ConsoleStream(manualClock(), { commentMs: 5 });
    const { url, close } = await serve((_request, response) => {
      stream.add(response.writeHead(200), {});
    });
    onTestFinished(close);
    const response = await fetch(url);
    let text = '';
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      if (text.includes('\n\n:\n\n:\n\n')) break;
    }
    expect(text).toMatch(/^retry: 1000\nevent: state\n/);
  });
});
