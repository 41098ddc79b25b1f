import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { startSandboxCli as start } from '../../../../test/cli/support.js';
import { checkLoudly, isWhole, makeBooks, readText, serveHere } from './support.js';

const cutShort = 'Two requests in a row got no response within 3 s. The rest of this row is skipped.';

test('an endpoint that never responds is judged after two attempts, within two minutes', async () => {
  let requests = 0;
  const url = await serveHere(() => (requests += 1));
  const startedAt = performance.now();
  const { code, err, result } = await checkLoudly(url);
  expect([code, requests]).toEqual([2, 2]);
  expect(err).toMatch(/^success: Two requests in a row got no response within 30 s\./);
  expect(result?.missing).toMatch(/^The first callback got no response, so that nothing could be seen\. /);
  expect(performance.now() - startedAt).toBeLessThan(120_000);
});

test('what gets no response is said immediately, and the rest of its row is skipped', async () => {
  const { book, count } = await makeBooks();
  const seen = new Set<string>();
  const url = await serveHere((request, response) => {
    void readText(request)
      .then(async (body) => {
        const callback = JSON.parse(body) as Parameters<typeof isWhole>[0];
        // A promise that rejects in an async handler of Express 4 leaves the request without a response, too.
        if (!isWhole(callback)) throw new Error('no callback');
        const isNew = !seen.has(callback.data.id);
        seen.add(callback.data.id);
        if (isNew) await book(callback);
        response.end();
      }, undefined)
      .catch(() => undefined);
  });
  const { code, err, wrong, less, unseen, trial } = await checkLoudly(url, '--patience', '3', ...count);
  expect([code, wrong, less]).toEqual([0, [], ['unbookable', 'flip', 'other-amount']]);
  expect(unseen).toEqual(['unknown-state', 'list', 'undocumented']);
  expect(err).toBe(`unbookable: ${cutShort}\nundocumented: ${cutShort}\n`);
  expect(trial('undocumented')?.because).toEqual([cutShort]);
  expect(trial('unbookable')?.responses.slice(-2)).toEqual(['timeout', 'timeout']);
  expect(trial('malformed')).toMatchObject({ responses: ['timeout', '200'], verdict: 'right' });
});

test('a response that begins in time and does not end is no silence', async () => {
  const url = await serveHere((request, response) => {
    request.resume();
    response.writeHead(200, { 'Content-Length': 5 }).write('o');
  });
  const { code, err, result } = await checkLoudly(url, '--patience', '3');
  expect([code, err]).toEqual([2, '']);
  expect(result?.missing).toContain('Your app began a response, and did not end it in time.');
});

test('in a terminal the row that is played is shown on standard error, and cleared at the end', async () => {
  const url = await serveHere((request, response) => request.resume().on('end', () => response.end()));
  const { ended } = start(['check', '--to', url], { terminal: true });
  const { err } = await ended;
  expect(err).toContain('success, row 1 of 19\r');
  expect(err).toContain('failed-burst, row 7 of 19\r');
  expect(err.endsWith('\u001b[K')).toBe(true);
});

test('without a terminal a row that takes long is named', async () => {
  const url = await serveHere((request, response) => {
    void pause(12_000).then(() => request.resume().on('end', () => response.writeHead(500).end()));
  });
  const { said, ended, child } = start(['check', '--to', url]);
  await expect.poll(() => said.err).toBe('Still waiting for the end of success, row 1 of 19.\n');
  child.kill();
  await ended;
});
