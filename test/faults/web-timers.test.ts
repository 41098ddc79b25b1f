import { once } from 'node:events';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { forkApp, kill } from '../support/programs/child.js';
import type { WebTimersOptions, WebTimersReport } from '../support/programs/web-timers-app.js';
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js';

let server: PostgresServer;

beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());

test('where a timer is a number, a late handler keeps its lease, its functions of afterCommit are called, and no timer is left', async () => {
  const app = forkApp('web-timers-app.ts', { url: server.url } satisfies WebTimersOptions);
  onTestFinished(() => kill(app));
  let reports: unknown;
  app.once('message', (message) => (reports = message));
  // A timer that is left would keep the process.
  const [exitCode] = (await once(app, 'exit')) as [number | null];
  const expected: WebTimersReport = {
    typeOfTimer: 'number',
    statuses: [503, 200],
    calls: ['handled', 'afterCommit'],
  };
  expect({ exitCode, reports }).toEqual({ exitCode: 0, reports: [expected, expected] });
});
