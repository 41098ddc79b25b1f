import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { objects, start } from '../cli/support.js';
import { soon } from '../sandbox/support.js';

vi.setConfig({ testTimeout: 90_000 });

/** A folder with a program in place of `xdg-open`, and the addresses that it was given. */
async function fakeOpener() {
  const folder = await mkdtemp(join(tmpdir(), 'transfer-callbacks-opener-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const opened = join(folder, 'opened');
  for (const name of ['xdg-open', 'open']) {
    await writeFile(join(folder, name), `#!/bin/sh\necho "$@" >> '${opened}'\n`, { mode: 0o755 });
  }
  return { env: { PATH: `${folder}:${String(process.env.PATH)}` }, opened: () => readFile(opened, 'utf8') };
}

test.each(['sandbox', 'demo'])('%s --open opens the console that it prints', async (command) => {
  const { env, opened } = await fakeOpener();
  const { said, child, ended } = start([command, '--open'], { env });
  await vi.waitFor(async () => {
    expect((await opened()).trim()).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/console\/$/);
  }, soon);
  const address = (await opened()).trim();
  expect(said.out).toContain(`Console     ${address}\n`);
  expect((await fetch(address)).status).toBe(200);
  child.kill('SIGINT');
  expect((await ended).code).toBe(0);
});

test('without a program that opens a browser, --open reports that, and the sandbox runs', async () => {
  const { said, child, ended } = start(['sandbox', '--open', '--json'], { env: { PATH: '/nowhere' } });
  await vi.waitFor(() => {
    expect(said.err).toMatch(/^No browser was opened \(spawn .* ENOENT\)\. Open the address by hand\.\n$/);
  }, soon);
  child.kill('SIGINT');
  const { code, out } = await ended;
  expect([code, objects(out)]).toMatchObject([0, [{ consoleUrl: expect.stringMatching(/\/console\/$/) as string }]]);
});

test('sandbox --no-console has none', async () => {
  const { said, child, ended } = start(['sandbox', '--no-console', '--json']);
  await vi.waitFor(() => {
    expect(said.out).toContain('\n');
  }, soon);
  const [{ baseUrl, consoleUrl }] = objects(said.out) as [{ baseUrl: string; consoleUrl?: string }];
  expect(consoleUrl).toBeUndefined();
  expect((await fetch(`${baseUrl}/console/`)).status).toBe(404);
  child.kill('SIGINT');
  expect((await ended).code).toBe(0);
});
