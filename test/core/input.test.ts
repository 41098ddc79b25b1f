import { transferSucceeded } from 'transfer-callbacks/testing';
import { expect, test, vi } from 'vitest';
import { Refused, Unreadable } from '../../src/core/input.js';
import { receiverOf } from './support.js';

test('a callback that could not be read is invalid, and its issue gives the reason', async () => {
  expect(await receiverOf().receive(new Unreadable('The body is not JSON.'))).toMatchObject({
    outcome: 'invalid',
    issues: [{ path: [], message: 'The body is not JSON.' }],
  });
});

test('a sender that its host has refused is unauthorized, whatever else it sent', async () => {
  const error = new Error('the secret is missing');
  const issues = [{ path: [], message: 'The sender was refused before the body was read.' }];
  expect(await receiverOf().receive(new Refused(error))).toMatchObject({ outcome: 'unauthorized', error, issues });
  expect(await receiverOf().receive(new Refused(), { verify: () => true })).toMatchObject({ outcome: 'unauthorized' });
});

test('what another copy of the package has read or refused is known', async () => {
  vi.resetModules();
  const copy = await import('../../src/core/input.js');
  expect(copy.Refused).not.toBe(Refused);
  expect(await receiverOf().receive(new copy.Refused())).toMatchObject({ outcome: 'unauthorized' });
  expect(await receiverOf().receive(new copy.Unreadable('The body is not JSON.'))).toMatchObject({
    issues: [{ message: 'The body is not JSON.' }],
  });
});

test('JSON is neither, whatever its keys are', async () => {
  const text = JSON.stringify(transferSucceeded());
  const keys = '"transfer-callbacks.input":"refused","Symbol(transfer-callbacks.input)":"unreadable"';
  expect(await receiverOf().receive(JSON.parse(`{${keys},${text.slice(1)}`))).toMatchObject({ outcome: 'processed' });
});
