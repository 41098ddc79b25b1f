// The schema of what a service sends, and whose fault it is.
import { expect, test } from 'vitest';
import { z } from 'zod/v4';
import { toResponse } from '../../src/http/responses.js';
import { announced, serve } from './service-support.js';

const paid = announced('payout.paid');

test('a payload schema is told by its issues, and read gets what it makes', async () => {
  const payload = z.object({
    event: z.string(),
    data: z.object({
      id: z.number(),
      reference: z.string(),
      amount: z.string().transform(Number),
      currency: z.string(),
    }),
  });
  const { receive, handled } = serve({ payload });
  expect(await receive(announced('payout.paid', { amount: '100' }))).toMatchObject({ outcome: 'processed' });
  expect(handled).toMatchObject([{ data: { amount: 100 } }]);
  const outcome = await receive(paid);
  expect(outcome).toMatchObject({ outcome: 'invalid', issues: [{ path: ['data', 'amount'] }] });
  expect(toResponse(outcome).status).toBe(400);
});

function fail(): never {
  throw new Error('a fault of the app');
}

test.each<[string, object]>([
  ['is asynchronous by zod', z.object({ event: z.string() }).refine(() => Promise.resolve(true))],
  ['is asynchronous by Standard Schema', { '~standard': { validate: () => Promise.reject(new Error('no reply')) } }],
  ['throws', z.unknown().transform(fail)],
])('a payload schema that %s is a fault of the app, which names `payload`', async (_what, payload) => {
  const { receive, handled, logger } = serve({ payload });
  const outcome = await receive(paid);
  expect(outcome).toMatchObject({
    outcome: 'invalid',
    issues: [{ path: [], message: 'The schema `payload` failed' }],
    error: expect.any(Error) as Error,
  });
  expect(String((outcome as { error?: unknown }).error)).not.toContain('`schema`');
  expect(toResponse(outcome).status).toBe(500);
  expect(logger.lines).toMatchObject([{ level: 'error', message: expect.stringContaining('at fault') as string }]);
  expect(handled).toEqual([]);
});
