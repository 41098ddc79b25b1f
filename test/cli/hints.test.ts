// What the command line prints about responses that acknowledge nothing.
import express from 'express';
import { memoryStore, transferCallbackRouter, type ReceiverOptions } from 'transfer-callbacks';
import { expect, onTestFinished, test } from 'vitest';
import { startMerchant, startReceiver } from '../sandbox/support.js';
import { freePort } from '../support/port.js';
import { serve } from '../support/serve.js';
import { run } from './support.js';

const done = (): void => undefined;
const options: ReceiverOptions = { store: memoryStore(), onSuccess: done, onFailed: done, logger: false };

async function startAtAnotherPath(): Promise<string> {
  const router = transferCallbackRouter(options);
  const { url, close } = await serve(express().post('/callbacks/transfers', router));
  onTestFinished(close);
  return `${url}/callbacks`;
}

/** An app whose middleware reads the body, and leaves nothing of it. */
async function startBehindReader(): Promise<string> {
  const app = express().use(express.raw({ type: '*/*' }), (request, _response, next) => {
    request.body = undefined;
    next();
  });
  const { url, close } = await serve(app.use(transferCallbackRouter(options)));
  onTestFinished(close);
  return url;
}

test.each<[string, () => Promise<string>, string]>([
  [
    'a path at which nothing is mounted',
    startAtAnotherPath,
    'Hint: Nothing is mounted at this path. With urlToken or transferToken the path of app.post ends in /:token, ' +
      'and the callback URL in the token. Correct the one that is wrong.',
  ],
  [
    'a port at which nothing listens',
    async () => `http://127.0.0.1:${await freePort()}/callbacks/transfers`,
    'Hint: Nothing listens there. Start your app, or correct the callback URL.',
  ],
  [
    'an app that reads the body before the router',
    startBehindReader,
    'Hint: Your app read the body before the router, or its schema threw. See the log of your app.',
  ],
])('trigger explains %s once, before its verdict', async (_endpoint, startEndpoint, hint) => {
  const { code, out, err } = await run('trigger', 'success', '--to', await startEndpoint(), '--speed', '10000');
  expect([code, err]).toEqual([1, '']);
  // In a terminal of 80 columns the hint may take two lines.
  const [, said = ''] = out.split(/\n(?=Hint: )/);
  expect(said.replaceAll('\n', ' ')).toBe(`${hint} Not passed. None of 4 attempts was acknowledged. `);
  expect(out.match(/^Hint: /gm)).toHaveLength(1);
});

test('trigger gives no hint if the responses are those that the scenario wants', async () => {
  const url = await startReceiver();
  const { out } = await run('trigger', 'flip', '--to', url, '--speed', '10000');
  expect(out).toContain('← 422');
  expect(out).not.toContain('Hint: ');
});

test('trigger gives no hint if the endpoint has acknowledged what it should have refused', async () => {
  const { url } = await startMerchant();
  const { code, out } = await run('trigger', 'flip', '--to', url, '--speed', '10000');
  expect(code).toBe(1);
  expect(out).not.toContain('Hint: ');
});
