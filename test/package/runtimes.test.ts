import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { kill, tied } from '../support/child.js';
import { freePort } from '../support/port.js';
import { install, installIn, makeWorkshop, packageName, repository, roots, run, stepMs } from './support.js';

// The quick start of the README on Bun and Deno, which npm installs for the machine that runs the tests.

let workshop: string;
let root: string;

beforeAll(async () => {
  workshop = await makeWorkshop();
  const newest = roots.at(-1) ?? expect.fail('There are no projects.');
  root = join(workshop, newest.folder);
  await mkdir(join(workshop, 'runtimes'));
  await Promise.all([
    installIn(workshop, newest),
    install(join(workshop, 'runtimes'), { dependencies: { bun: '1.4.5', deno: '2.9.6' } }, '--ignore-scripts'),
  ]);
  await cp(join(repository, 'examples', 'quick-start.ts'), join(root, 'server.mjs'));
}, stepMs);

afterAll(() => rm(workshop, { recursive: true, force: true }));

const permissions = ['--no-prompt', '--allow-net', '--allow-env', '--allow-read', '--allow-sys=hostname'];

test.each([
  ['Bun', '@oven', 'bin/bun', []],
  ['Deno', '@deno', 'deno', ['run', ...permissions]],
])('the quick start runs on %s', async (name, scope, path, args) => {
  const program = await findProgram(name, scope, path);
  const port = await freePort();
  const env = { ...process.env, PORT: String(port), DENO_DIR: join(workshop, 'deno'), DENO_NO_UPDATE_CHECK: '1' };
  const server = tied(
    spawn(program, [...args, 'server.mjs'], { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'] }),
  );
  onTestFinished(() => kill(server));
  const printed = createInterface(server.stdout);
  const url = `http://localhost:${port}/callbacks/transfers`;
  const ended = once(server, 'exit').then(([code]) => [`${name} has ended with ${code}.`]);
  expect(await Promise.race([once(printed, 'line'), ended])).toEqual([`Callbacks are received at ${url}`]);
  const paid = once(printed, 'line');
  await run('npx', ['--no', '--', packageName, 'trigger', 'success', '--to', url], root);
  expect(await paid).toEqual([expect.stringMatching(/^Paid payout-\w+: 15000 XAF$/)]);
});

/** Resolves with the program in the package for this machine, to which the install script, which is not run, would link. */
async function findProgram(name: string, scope: string, path: string): Promise<string> {
  const folder = join(workshop, 'runtimes', 'node_modules', scope);
  const [forMachine] = await readdir(folder).catch(() => []);
  if (forMachine !== undefined) return join(folder, forMachine, path);
  const machine = `${process.platform} on ${process.arch}`;
  return expect.fail(`npm has installed no ${name} for ${machine}: there is none, or its download has failed.`);
}
