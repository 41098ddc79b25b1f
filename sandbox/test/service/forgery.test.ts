import { expect, test } from 'vitest';
import { judgeForgery } from '../../src/service/forgery.js';
import { transferSucceeded } from 'transfer-sandbox';

const body = JSON.stringify(transferSucceeded());

test('another 503 is no verdict about the sender', () => {
  const response = { status: 503, body: '{"message":"Not now."}' };
  expect(judgeForgery(response, { url: 'http://127.0.0.1/', body, hasHeaders: false }, [])).toMatchObject({
    tone: 'none',
    text: 'This is no verdict about the sender.',
  });
});
