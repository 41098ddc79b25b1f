import { expect, test } from 'vitest';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { judgeAttempts, type TransferScenario } from '../../src/service/scenarios.js';

const succeeded = JSON.stringify(transferSucceeded({ id: '7' }));
const failed = JSON.stringify(transferFailed({ id: '7' }));
const json = 'application/json';

type Attempt = readonly [status: number, body?: string, contentType?: string];

function judge(scenario: TransferScenario, ...attempts: readonly Attempt[]) {
  return judgeAttempts(
    scenario,
    attempts.map(([status, body = succeeded, contentType = json], index) => ({
      ...{ number: index + 1, body, contentType },
      response: { status, body: '' },
    })),
  );
}

test.each<[TransferScenario, readonly Attempt[], boolean, string]>([
  ['no-callback', [], true, 'No callback was sent'],
  ['success', [[500], [200]], true, 'The callback was acknowledged at attempt 2.'],
  ['success', [[500], [503]], false, 'None of 2 attempts was acknowledged.'],
  ['malformed', [[200, succeeded.slice(0, 40)]], false, 'JSON that was cut short was acknowledged.'],
  ['flip', [[200, failed], [422]], true, 'the contradiction that followed it was refused'],
  ['flip', [[200, failed], [200]], false, 'a payout may count twice'],
  ['duplicate', [[200], [409]], false, 'refused when it came again'],
  ['wrong-content-type', [[200, succeeded, 'text/plain']], true, 'right if your app has read it'],
])('the verdict on %s is right: %#', (scenario, attempts, passed, because) => {
  expect(judge(scenario, ...attempts)).toEqual({ passed, because: expect.stringContaining(because) as string });
});
