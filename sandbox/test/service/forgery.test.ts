import { expect, test } from 'vitest';
import { memoryStore, transferCallbackListener } from 'transfer-callbacks';
import { serve } from '../../../test/support/servers/serve.js';
import { attemptCallback } from '../../src/attempt/attempt.js';
import { judgeForgery } from '../../src/service/forgery.js';
import { transferSucceeded } from 'transfer-sandbox';

const body = JSON.stringify(transferSucceeded());

test('an app that asks the service did not believe a forgery, whatever its 503 says in this version', async () => {
  const nothing = (): void => undefined;
  const confirm = (): never => {
    throw new Error('The service knows no such transfer.');
  };
  const options = { store: memoryStore(), onSuccess: nothing, onFailed: nothing, logger: false as const };
  const { url, close } = await serve(transferCallbackListener({ ...options, confirm }));
  const response = await attemptCallback(url, body);
  await close();
  expect(response).toMatchObject({ status: 503 });
  expect(judgeForgery(response, { url, body, hasHeaders: false }, [])).toMatchObject({ tone: 'good' });
});

test('another 503 is no verdict about the sender', () => {
  const response = { status: 503, body: '{"message":"Not now."}' };
  expect(judgeForgery(response, { url: 'http://127.0.0.1/', body, hasHeaders: false }, [])).toMatchObject({
    tone: 'none',
    text: 'This is no verdict about the sender.',
  });
});
