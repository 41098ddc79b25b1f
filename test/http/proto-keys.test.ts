import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import express from 'express';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { transferSucceeded } from 'transfer-callbacks/testing';
import type { Middleware } from '../support/http-servers.js';
import { post } from '../support/post.js';
import { serve } from '../support/serve.js';
import { recordingOptions } from '../support/recording-options.js';

/** The listener as in a project that has this package for its zod. */
async function loadListener(zod: 'zod' | 'zod3') {
  vi.resetModules();
  // Its ES modules import each other by the name `zod`, and would get the other one here; its CommonJS does not.
  if (zod === 'zod3') vi.doMock('zod/v4', () => createRequire(import.meta.url)('zod3/v4') as object);
  try {
    return (await import('transfer-callbacks')).transferCallbackListener;
  } finally {
    vi.doUnmock('zod/v4');
  }
}

function versionOf(zod: string): string {
  const text = readFileSync(new URL(`../../node_modules/${zod}/package.json`, import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

const parsers: [string, Middleware[]][] = [
  ['left alone', []],
  ['after express.json()', [express.json()]],
  ['after express.raw()', [express.raw({ type: '*/*' })]],
  ['after express.text()', [express.text({ type: '*/*' })]],
];

const poison = '"__proto__":{"polluted":"yes","toString":null},"constructor":{"prototype":{"polluted":"yes"}}';
const poisons: [string, string][] = [
  ['by name', poison],
  ['with an escape in its name', poison.replace('__proto__', '\\u005f_proto__')],
  ['with escapes only', poison.replace('__proto__', '\\u005F\\u005f\\u0070\\u0072\\u006f\\u0074\\u006f\\u005f\\u005f')],
];

describe.each([
  { version: versionOf('zod'), listener: await loadListener('zod') },
  { version: versionOf('zod3'), listener: await loadListener('zod3') },
])('on zod $version', ({ listener }) => {
  async function start(before: Middleware[]) {
    const { options, handled } = recordingOptions();
    const listen = listener(options);
    const app = express();
    for (const middleware of before) app.use(middleware);
    const { url, close } = await serve(app.use(listen));
    onTestFinished(close);
    return { url, handled };
  }

  describe.each(poisons)('a body with __proto__ %s', (_how, keys) => {
    test.each(parsers)('%s reaches no prototype', async (_treatment, before) => {
      const { url, handled } = await start(before);
      const callback = transferSucceeded({ paymentMethod: 'bank', walletNumber: null, bankAccount: { bic: 'X' } });
      const body = JSON.stringify(callback)
        .replace('{"event"', () => `{${keys},"extra":[{${keys}}],"event"`)
        .replace('"data":{', () => `"data":{${keys},`)
        .replace('"bankAccount":{', () => `"bankAccount":{${keys},"deep":{"deeper":{${keys}}},`);
      expect((await post(url, body)).status).toBe(200);
      const [seen] = handled;
      expect(seen).toMatchObject(callback);
      const { extra } = seen as unknown as { extra: object[] };
      const { deep } = seen?.data.bankAccount as unknown as { deep: { deeper: object } };
      for (const each of [seen, seen?.data, seen?.data.bankAccount, deep, deep.deeper, extra[0], {}]) {
        expect(Object.getPrototypeOf(each)).toBe(Object.prototype);
        expect(Object.hasOwn(each ?? {}, '__proto__')).toBe(false);
        expect((each as { polluted?: unknown }).polluted).toBeUndefined();
      }
    });
  });

  test.each(parsers)('%s, __proto__ lends none of its fields to a callback', async (_treatment, before) => {
    const { url, handled } = await start(before);
    const callback = transferSucceeded();
    for (const body of [
      `{"__proto__":${JSON.stringify(callback)}}`,
      `{"event":"transfer.success","__proto__":{"data":${JSON.stringify(callback.data)}}}`,
      `{"event":"transfer.success","data":{"__proto__":${JSON.stringify(callback.data)}}}`,
      JSON.stringify(callback).replace('"id":', '"__proto__":{"id":"stolen"},"_":'),
    ]) {
      expect((await post(url, body)).status).toBe(400);
    }
    expect(handled).toEqual([]);
  });
});
