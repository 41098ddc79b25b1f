import { transferSucceeded } from 'transfer-callbacks/testing';
import { expect, test, vi } from 'vitest';
import { Refused } from '../../src/core/input.js';
import { receiverOf } from './support.js';

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
