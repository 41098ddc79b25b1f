import { describe, expect, test } from 'vitest';
import { transferCallbackSchema } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { httpServers } from '../support/http-servers.js';
import { errorBody } from '../support/post.js';
import { recordingOptions } from '../support/recording-options.js';
import { deliver, start } from './support.js';

/** Everything that others have sent over the wire from an error: nothing of it may show. */
const tale = 'tale of postgres://admin:hunter2@db';
const thrown: [string, unknown][] = [
  ['an error', new Error(tale)],
  ['an error with status 200', Object.assign(new Error(tale), { status: 200, statusCode: 200, expose: true })],
  ['an error with a body', Object.assign(new Error(tale), { body: tale, toJSON: () => tale })],
  ['an error with a code of the package', Object.assign(new Error(tale), { code: 'CLOSING', outcome: 'processed' })],
  ['an error with a cause', new Error(tale, { cause: new Error(tale) })],
  ['an aggregate', new AggregateError([new Error(tale)], tale)],
  ['an object that looks settled', { status: 200, outcome: 'processed' }],
  ['a text', tale],
  ['the text route', 'route'],
  ['undefined', undefined],
  ['a symbol', Symbol(tale)],
  ['an object without a prototype', Object.create(null) as unknown],
];

function thrower(reason: unknown, how: string): () => Promise<never> {
  return () => {
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- JavaScript may throw anything.
    if (how === 'rejected') return Promise.reject(reason);
    throw reason;
  };
}

const places = [
  { place: 'the handler', names: ['onSuccess'], status: 500, message: 'The callback could not be handled.' },
  { place: 'confirm', names: ['confirm'], status: 503, message: 'The callback could not be confirmed.' },
  { place: 'a verifier', names: ['verify'], status: 401, message: 'The sender is not verified.' },
] as const;

describe.each(httpServers)('nothing of an error reaches the wire on $name', (server) => {
  describe.each(places)('from $place', ({ names: [name], status, message }) => {
    test.each(thrown)('%s does not reach the wire', async (_what, reason) => {
      for (const how of ['thrown', 'rejected']) {
        const { options } = recordingOptions();
        const { url, passedOn, close } = await server.start({ ...options, [name]: thrower(reason, how) });
        const response = await deliver(url);
        await close();
        expect(response.status).toBe(status);
        expect(response.body).toBe(errorBody(status, message));
        expect(JSON.stringify(response.headers)).not.toContain('tale');
        expect(passedOn).toEqual([]);
      }
    });
  });

  test.each(thrown)('%s from the store does not reach the wire', async (_what, reason) => {
    for (const how of ['thrown', 'rejected']) {
      const { options } = recordingOptions();
      const { url, passedOn, close } = await server.start({ ...options, store: { claim: thrower(reason, how) } });
      const response = await deliver(url);
      await close();
      expect(response.status).toBe(503);
      expect(response.body).toBe(errorBody(503, 'The callback could not be recorded.'));
      expect(passedOn).toEqual([]);
    }
  });

  test('an error that throws when it is looked at is a failed handler, and the next attempt runs', async () => {
    const { options, handled } = recordingOptions();
    let attempts = 0;
    const spiky = Object.defineProperty(new Error(tale), 'code', {
      get() {
        throw new Error(tale);
      },
    });
    const { url } = await start(server, {
      ...options,
      inFlightWaitMs: 0,
      onSuccess(callback) {
        attempts += 1;
        if (attempts === 1) throw spiky;
        options.onSuccess(callback);
      },
    });
    const callback = transferSucceeded();
    const response = await deliver(url, callback);
    expect(response.status).toBe(500);
    expect(response.body).toBe(errorBody(500, 'The callback could not be handled.'));
    expect((await deliver(url, callback)).body).toBe('{"outcome":"processed"}');
    expect(handled).toEqual([callback]);
  });

  test('an error from a schema that throws does not reach the wire', async () => {
    const { options, logged } = recordingOptions();
    const schema = transferCallbackSchema.refine(() => {
      throw new Error(tale);
    });
    const { url, passedOn } = await start(server, { ...options, schema });
    const response = await deliver(url);
    expect(response.status).toBe(500);
    expect(response.body).toBe(errorBody(500, 'The callback could not be read.'));
    expect(passedOn).toEqual([]);
    expect(logged[0]?.details.err).toMatchObject({ message: tale });
  });
});
