import { spawn, type ChildProcess } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, onTestFinished, test, vi } from 'vitest';
import { kill, tied } from '../support/programs/child.js';
import { freePort } from '../support/servers/port.js';
import {
  findApp,
  findCheck,
  install,
  makeWorkshop,
  type Manifest,
  packageName,
  packages,
  readJson,
  repository,
  run,
  secret,
  start,
  startApp,
  stepMs,
} from './support.js';

// A release, rehearsed from `npm publish` to the upgrade of an app, on a registry of this test's own.

/**
 * The newest that runs on the oldest Node that is supported. It asks for node-fetch by a tag that not every registry
 * has.
 */
const server = { dependencies: { verdaccio: '6.8.0' }, overrides: { 'node-fetch': '2.7.0' } };

const sandboxName = 'transfer-sandbox';

let workshop: string;
let registry: ChildProcess | undefined;
/** Lets npm publish to that registry, and get every package from it. */
let env: NodeJS.ProcessEnv;
let version: string;
/** What npm has printed. */
let published: string;

const at = (...path: string[]): string => join(workshop, ...path);

beforeAll(async () => {
  workshop = await makeWorkshop();
  await mkdir(at('registry'));
  await install(at('registry'), server);
  const upstream = (await run('npm', ['config', 'get', 'registry'], workshop)).trim();
  await writeFile(at('registry', 'config.yaml'), renderConfig(upstream));
  const address = `127.0.0.1:${await freePort()}`;
  // As root it warns, and runs.
  const quiet = { ...process.env, NODE_OPTIONS: '--no-warnings' };
  const program = at('registry', 'node_modules', 'verdaccio', 'bin', 'verdaccio');
  const args = [program, '--config', 'config.yaml', '--listen', address];
  registry = tied(
    spawn(process.execPath, args, { cwd: at('registry'), env: quiet, stdio: ['ignore', 'ignore', 'inherit'] }),
  );
  // npm publishes with a token only. The registry lets anybody publish.
  const npmrc = [`registry=http://${address}/`, `//${address}/:_authToken=rehearsal`, `cache=${at('cache')}`];
  await writeFile(at('npmrc'), npmrc.join('\n'));
  env = {
    NPM_CONFIG_USERCONFIG: at('npmrc'),
    NPM_CONFIG_REGISTRY: `http://${address}/`,
    NPM_CONFIG_CACHE: at('cache'),
  };
  await vi.waitFor(() => fetch(`http://${address}/-/ping`), { timeout: stepMs / 2 });
  ({ version } = await readJson<Manifest>(join(repository, 'package.json')));
  published = (await publish(inject('sandboxTarball'))) + (await publish(inject('tarball')));
}, stepMs);

afterAll(async () => {
  if (registry !== undefined) await kill(registry);
  await rm(workshop, { recursive: true, force: true });
});

const renderConfig = (upstream: string): string => `
storage: ./storage
uplinks: { upstream: { url: ${JSON.stringify(upstream)}, maxage: 1h } }
packages:
  ${packageName}: { access: $all, publish: $all }
  ${sandboxName}: { access: $all, publish: $all }
  '**': { access: $all, proxy: upstream }
web: { enable: false }
log: { type: stdout, level: warn }
`;

/** Publishes a tarball or a folder, and returns what npm has printed. */
async function publish(what: string): Promise<string> {
  // Provenance needs the workflow, and the scripts have run when the tarball was packed.
  const args = ['publish', what, '--provenance=false', '--ignore-scripts'];
  const { code, stdout, stderr } = await start('npm', args, workshop, env);
  expect(code, stderr).toBe(0);
  return stdout + stderr;
}

/** Starts the first app of the README, and expects the check of the README to find nothing wrong in it. */
async function checkQuickStart(app: string): Promise<void> {
  const server = await startApp(app, findApp('memory'));
  onTestFinished(server.stop);
  const check = findCheck(server.port);
  const { code, stdout, stderr } = await start('bash', ['-c', check], app, { ...env, CALLBACK_SECRET: secret });
  expect(stdout, stderr).toContain('19 right, 0 wrong');
  expect(code).toBe(0);
  await server.stop();
}

const readInstalled = (app: string, file: string): Promise<string> =>
  readFile(join(app, 'node_modules', packageName, file), 'utf8');

test.each([
  [packageName, ''],
  [sandboxName, 'sandbox'],
])('npm publishes %s as it is, and has nothing to fix in it', async (name, folder) => {
  expect(published).toContain(`+ ${name}@${version}`);
  expect(published).not.toMatch(/npm (warn|error) publish|auto-corrected/);
  const manifest = await readFile(join(repository, folder, 'package.json'), 'utf8');
  await mkdir(at(`fixed-${name}`));
  await writeFile(at(`fixed-${name}`, 'package.json'), manifest);
  await run('npm', ['pkg', 'fix'], at(`fixed-${name}`), env);
  expect(await readFile(at(`fixed-${name}`, 'package.json'), 'utf8')).toBe(manifest);
});

test(
  'the commands and the code of the README pass its check in an empty folder, and again after an upgrade',
  async () => {
    const app = at('app');
    await mkdir(app);
    await run('npm', ['install', ...packages], app, env);
    await checkQuickStart(app);

    const next = version.replace(
      /^(\d+)\.(\d+)\..*/,
      (_, major: string, minor: string) => `${major}.${Number(minor) + 1}.0`,
    );
    await run('tar', ['xzf', inject('tarball')], workshop);
    const manifest = await readJson<Manifest>(at('package', 'package.json'));
    await writeFile(at('package', 'package.json'), JSON.stringify({ ...manifest, version: next }));
    const changelog = await readFile(at('package', 'CHANGELOG.md'), 'utf8');
    const entry = `## ${next} - 2027-01-01\n\n### Renamed\n\n- \`oldName\` is \`newName\`.\n\n`;
    await writeFile(at('package', 'CHANGELOG.md'), changelog.replace(/^## /m, `${entry}## `));
    await publish(at('package'));

    await run('npm', ['install', `${packageName}@latest`], app, env);
    expect((JSON.parse(await readInstalled(app, 'package.json')) as Manifest).version).toBe(next);
    expect(await readInstalled(app, 'CHANGELOG.md')).toContain(entry);
    await checkQuickStart(app);
  },
  stepMs,
);
