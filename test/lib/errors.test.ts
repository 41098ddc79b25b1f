import { expect, test } from 'vitest';
import { listCauses } from '../../src/lib/errors.js';

test('the causes of an error are found behind each name that libraries give them', () => {
  const server = Object.assign(new Error('server'), { errno: 1213 });
  const driver = Object.assign(new Error('driver'), { parent: server });
  const app = new Error('app', { cause: driver });
  expect(listCauses(app)).toEqual([app, driver, server]);
  expect([listCauses('a text'), listCauses(undefined), listCauses(null)]).toEqual([[], [], []]);
});

test('the causes of an error that is its own cause are listed to an end', () => {
  const error = new Error('again');
  error.cause = error;
  expect(listCauses(error)).toHaveLength(10);
});
