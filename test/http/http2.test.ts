import { once } from 'node:events';
import { connect, constants, createServer, type ClientHttp2Session, type IncomingHttpHeaders } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import {
  headerToken,
  transferCallbackListener,
  transferCallbackReceiver,
  type TransferCallbackOptions,
  type Verifier,
} from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { errorBody } from '../support/helpers/post.js';
import { recordingOptions } from '../support/helpers/logger.js';

/** Serves the listener over HTTP/2 without TLS, and connects to it. */
async function start(options: TransferCallbackOptions) {
  const server = createServer(transferCallbackListener(options)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const closedStreams: unknown[] = [];
  server.on('stream', (stream) => {
    stream.once('close', () => closedStreams.push(stream.rstCode));
  });
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  onTestFinished(async () => {
    session.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return { session, closedStreams };
}

async function send(session: ClientHttp2Session, body: string | Buffer, { ends = true, headers = {} } = {}) {
  const stream = session.request({ ':method': 'POST', 'content-type': 'application/json', ...headers });
  stream.on('error', () => undefined);
  let text = '';
  stream.setEncoding('utf8').on('data', (piece: string) => (text += piece));
  const ended = new Promise((resolve) => stream.once('end', resolve));
  stream.write(body);
  if (ends) stream.end();
  const [responseHeaders] = (await once(stream, 'response')) as [IncomingHttpHeaders & { ':status': number }];
  await ended;
  return { status: responseHeaders[':status'], headers: responseHeaders, body: text };
}

test('a callback is handled over HTTP/2, a verifier gets its bytes, and a second copy is a duplicate', async () => {
  const { options, handled } = recordingOptions();
  const bodies: unknown[] = [];
  const verify: Verifier = (_request, _callback, body) => bodies.push(body === undefined || Buffer.from(body)) > 0;
  const { session } = await start({ ...options, verify });
  const callback = transferSucceeded();
  expect(await send(session, JSON.stringify(callback))).toMatchObject({ status: 200, body: '{"outcome":"processed"}' });
  expect(await send(session, JSON.stringify(callback))).toMatchObject({ status: 200, body: '{"outcome":"duplicate"}' });
  expect(handled).toEqual([callback]);
  expect(bodies.map(String)).toEqual([JSON.stringify(callback), JSON.stringify(callback)]);
});

test('no header of a connection is sent over HTTP/2, and Node warns of none', async () => {
  const warnings: Error[] = [];
  const note = (warning: Error): number => warnings.push(warning);
  process.on('warning', note);
  onTestFinished(() => {
    process.off('warning', note);
  });
  const receiver = transferCallbackReceiver(recordingOptions().options);
  const { session } = await start({ receiver, bodyLimitBytes: 1_000 });
  const tooLong = await send(session, 'x'.repeat(1_001));
  expect([tooLong.status, tooLong.headers.connection]).toEqual([413, undefined]);
  await receiver.close();
  const closing = await send(session, JSON.stringify(transferSucceeded()));
  expect([closing.status, closing.headers.connection]).toEqual([503, undefined]);
  // Node emits warnings on the next tick.
  await new Promise((resolve) => setImmediate(resolve));
  expect(warnings).toEqual([]);
});

test('a refused sender gets its response over HTTP/2 before its body has come, and is not waited for', async () => {
  const { session, closedStreams } = await start({
    ...recordingOptions().options,
    verify: headerToken('x-token', 'a-secret-long-enough'),
  });
  const response = await send(session, 'x', { ends: false });
  expect(response).toMatchObject({ status: 401, body: errorBody(401, 'The sender is not verified.') });
  await vi.waitFor(() => {
    expect(closedStreams).toEqual([constants.NGHTTP2_NO_ERROR]);
  });
});

test('a body without end is cut over HTTP/2, and the session goes on', async () => {
  const { session, closedStreams } = await start({ ...recordingOptions().options, bodyLimitBytes: 1_000 });
  const response = await send(session, Buffer.alloc(1_000_000, '['), { ends: false });
  expect(response.status).toBe(413);
  await vi.waitFor(() => {
    expect(closedStreams).toEqual([constants.NGHTTP2_NO_ERROR]);
  });
  expect((await send(session, JSON.stringify(transferSucceeded()))).status).toBe(200);
});
