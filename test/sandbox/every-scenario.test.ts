import { expect, test } from 'vitest';
import type { TransferCallback } from 'transfer-callbacks';
import { transferScenarios } from 'transfer-callbacks/sandbox';
import { create, startReceiver, startSandbox } from './support.js';

// How a transfer gets its scenario, and what holds for every scenario. scenarios.test.ts tests what each of them does.

test('a scenario is chosen by setScenario, else by the beginning of the externalId, else by the option', async () => {
  const sandbox = await startSandbox({ clock: 'manual', scenario: 'failed' });
  sandbox.setScenario('burst-1', 'flip');
  for (const externalId of ['burst-1', 'burst-2', 'no-callback', 'bursting', 'payout-1', 'constructor']) {
    await create(sandbox, { externalId });
  }
  expect(sandbox.transfers().map(({ scenario }) => scenario)).toEqual([
    ...['flip', 'burst', 'no-callback', 'failed', 'failed', 'failed'],
  ]);
});

test('every scenario has a unique name and a description of one line', () => {
  expect(new Set(transferScenarios.map(({ name }) => name)).size).toBe(15);
  for (const { description } of transferScenarios) expect(description).toMatch(/^[A-Z][^\n]+\.$/);
});

test('against the receiver of this package, every scenario runs one handler once and ends acknowledged', async () => {
  const handled: string[] = [];
  const note = ({ data }: TransferCallback) => void handled.push(data.externalId);
  const url = await startReceiver({ onSuccess: note, onFailed: note });
  const sandbox = await startSandbox({ speed: 1_000, callbackUrl: url });
  // Silence has nothing to acknowledge, and a flip is a conflict, which the receiver refuses by design.
  const names = transferScenarios.map(({ name }) => name).filter((name) => name !== 'no-callback' && name !== 'flip');
  for (const externalId of names) await create(sandbox, { externalId });
  await sandbox.idle();
  expect([...handled].sort()).toEqual([...names].sort());
  expect(sandbox.transfers().filter(({ delivered }) => !delivered)).toEqual([]);

  await create(sandbox, { externalId: 'flip' });
  await sandbox.idle();
  expect(handled.filter((name) => name === 'flip')).toHaveLength(1);
  const responses = sandbox.attempts.filter(({ externalId }) => externalId === 'flip').map(({ response }) => response);
  expect(responses).toMatchObject([200, 422, 422, 422, 422].map((status) => ({ status })));
});
