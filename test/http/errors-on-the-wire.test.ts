import { describe, expect, test } from 'vitest';
import { httpServers } from '../support/servers/http-servers.js';
import { errorBody } from '../support/helpers/post.js';
import { deliver, startRecording } from './support.js';

/** Everything that others have sent over the wire from an error: nothing of it may show. */
const tale = 'tale of postgres://admin:hunter2@db';
const thrown: [string, unknown][] = [
  ['an error', new Error(tale)],
  ['an error with status 200', Object.assign(new Error(tale), { status: 200, statusCode: 200, expose: true })],
  ['an error with a body', Object.assign(new Error(tale), { body: tale, toJSON: () => tale })],
  ['an error with a code of the package', Object.assign(new Error(tale), { code: 'CLOSING', outcome: 'processed' })],
  ['an error with a cause', new Error(tale, { cause: new Error(tale) })],
  ['an aggregate', new AggregateError([new Error(tale)], tale)],
  ['an object that looks handled', { status: 200, outcome: 'processed' }],
  ['a text', tale],
  ['the text route', 'route'],
  ['undefined', undefined],
  ['a symbol', Symbol(tale)],
  ['an object without a prototype', Object.create(null) as unknown],
];

type Fail = () => Promise<never>;
const places: [string, (fail: Fail) => object, number, string][] = [
  ['the handler', (fail) => ({ onSuccess: fail }), 500, 'The callback could not be handled.'],
  ['confirm', (fail) => ({ confirm: fail }), 503, 'The callback could not be confirmed.'],
  ['a verifier', (fail) => ({ verify: fail }), 401, 'The sender is not verified.'],
  ['the store', (fail) => ({ store: { claim: fail } }), 503, 'The callback could not be recorded.'],
];

describe.each(httpServers)('on $name', (server) => {
  test.each(places)(
    'nothing that %s throws or rejects with reaches the wire',
    async (_place, given, status, message) => {
      let fail: Fail = () => expect.fail('not yet');
      const { url, passedOn } = await startRecording(server, { ...given(() => fail()) });
      for (const [what, reason] of thrown) {
        const throwing = (): never => {
          throw reason;
        };
        // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- JavaScript may throw anything.
        for (fail of [throwing, () => Promise.reject(reason)]) {
          const response = await deliver(url);
          expect([what, response.status, response.body]).toEqual([what, status, errorBody(status, message)]);
          expect(JSON.stringify(response.headers)).not.toContain('tale');
        }
      }
      expect(passedOn).toEqual([]);
    },
  );
});
