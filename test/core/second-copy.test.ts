import { expect, test, vi } from 'vitest';
import { Refused } from '../../src/core/validate.js';
import { receiverOf } from './support.js';

test('what another copy of the package has read or refused is known', async () => {
  vi.resetModules();
  const copy = await import('../../src/core/validate.js');
  expect(copy.Refused).not.toBe(Refused);
  expect(await receiverOf().receive(new copy.Refused())).toMatchObject({ outcome: 'unauthorized' });
  expect(await receiverOf().receive(new copy.Unreadable('The body is not JSON.'))).toMatchObject({
    issues: [{ message: 'The body is not JSON.' }],
  });
});
