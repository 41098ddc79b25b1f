import { createHmac } from 'node:crypto';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { builtinModules } from 'node:module';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import {
  compile,
  install,
  installed,
  makeWorkshop,
  readJson,
  repository,
  run,
  stepMs,
  type Manifest,
} from '../../../test/package/support.js';
import { findLinks } from '../../../test/docs/pages.js';
import { serveForTest } from '../../../test/support/servers/serve-for-test.js';

// What transfer-sandbox holds, and that it works alone, and beside transfer-callbacks.

const name = 'transfer-sandbox';

let workshop: string;
const alone = (...path: string[]): string => join(workshop, 'alone', ...path);
const beside = (...path: string[]): string => join(workshop, 'beside', ...path);

beforeAll(async () => {
  workshop = await makeWorkshop();
  const dependencies = { [name]: `file:${inject('sandboxTarball')}`, '@types/node': await installed('@types/node') };
  await Promise.all([mkdir(alone()), mkdir(beside())]);
  await install(alone(), { dependencies });
  const receiver = { 'transfer-callbacks': `file:${inject('tarball')}`, zod: await installed('zod') };
  await install(beside(), { dependencies: { ...dependencies, ...receiver } });
}, stepMs);

afterAll(() => rm(workshop, { recursive: true, force: true }));

/** The paths of the files that are installed, from the folder of the package. */
async function listFiles(): Promise<string[]> {
  const home = alone('node_modules', name);
  const entries = await readdir(home, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(home, join(entry.parentPath, entry.name)))
    .sort();
}

test('the tarball is small, and contains the built files, the README and the licence, and nothing else', async () => {
  const files = await listFiles();
  const others = files.filter(
    (file) =>
      !/^dist\/(cjs\/package\.json|(cjs\/)?[\w-]+\.js|[\w-]+\.d\.c?ts|console\/[a-z]+\.(html|css|js|svg))$/.test(file),
  );
  expect(others).toEqual(['LICENSE', 'README.md', 'package.json']);
  const { size } = await stat(inject('sandboxTarball'));
  expect(size, `The tarball has ${size} bytes.`).toBeLessThan(181_000);
});

test('every link of the README leads to npm, to a section of the README, or to a picture', async () => {
  const page = { path: 'README.md', text: await readFile(alone('node_modules', name, 'README.md'), 'utf8') };
  const links = findLinks(page);
  expect(links.length).toBeGreaterThan(0);
  expect(links.filter(({ path }) => path !== page.path && !/^\.\.\/docs\/images\/[\w-]+\.png$/.test(path))).toEqual([]);
  expect(page.text).toContain('](https://www.npmjs.com/package/transfer-callbacks)');
});

test('what is packed imports nothing but modules of Node, by their whole names', async () => {
  const scripts = (await listFiles()).filter((file) => /^dist\/[^/]+\.c?js$/.test(file));
  const texts = await Promise.all(scripts.map((file) => readFile(alone('node_modules', name, file), 'utf8')));
  // esbuild names in a comment the folder from which a definition is imported by its name.
  const imported = texts.flatMap((text) =>
    [...text.replace(/^\/\/.*$/gm, '').matchAll(/(?:\bfrom|\bimport|\b(?:import|require)\()\s*["']([^"']+)["']/g)].map(
      ([, from = '']) => from,
    ),
  );
  const modules = new Set(imported.filter((from) => !from.startsWith('./')));
  expect(modules).toContain('node:http');
  expect([...modules].filter((from) => !from.startsWith('node:') || !builtinModules.includes(from.slice(5)))).toEqual(
    [],
  );
});

test('no manifest names the other package, both have one version, and neither runs a script when it is installed', async () => {
  const own = await readJson<Manifest & { engines: object }>(join(repository, 'sandbox', 'package.json'));
  const other = await readJson<Manifest & { engines: object }>(join(repository, 'package.json'));
  const names = (manifest: object): string[] =>
    Object.entries(manifest).flatMap(([field, value]) =>
      /dependencies$/i.test(field) ? Object.keys(value as object) : [],
    );
  expect(names(own)).toEqual([]);
  expect(names(other)).not.toContain(name);
  expect([own.version, own.engines]).toEqual([other.version, other.engines]);
  expect(Object.keys(own.scripts)).toEqual(['build', 'prepack']);
  expect((await readdir(alone('node_modules'))).sort()).toEqual(
    expect.not.arrayContaining(['transfer-callbacks', 'zod', 'express']),
  );
});

test.each([
  ['module', `import * as sandbox from '${name}';`],
  ['commonjs', `const sandbox = require('${name}');`],
])(
  'the sandbox serves its page and delivers its fixtures, and the callback of a service by its name, in a %s',
  async (type, load) => {
    const program = `${load}
    const { deliver, transferSandbox, transferSucceeded } = sandbox;
    transferSandbox().then(async (running) => {
      const files = ['', 'app.js', 'style.css', 'icon.svg'].map((file) => fetch(running.consoleUrl + file));
      const statuses = (await Promise.all(files)).map(({ status }) => status);
      const app = (request, response) => request.resume().on('end', () => response.end());
      const { acknowledged } = await deliver(app, transferSucceeded());
      const named = await deliver(app, {}, { service: 'mtn' });
      console.log(JSON.stringify([statuses, acknowledged && named.acknowledged, Object.keys(sandbox).sort()]));
      await running.close();
    });`;
    const printed = await run(process.execPath, [`--input-type=${type}`, '--eval', program], alone());
    expect(JSON.parse(printed)).toEqual([
      [200, 200, 200, 200],
      true,
      [
        ...['basicAuth', 'defineService', 'deliver', 'headerToken', 'hmacSignature', 'ipAllowList', 'messageSignature'],
        ...['publicKeySignature', 'transferFailed', 'transferSandbox', 'transferScenarios', 'transferSucceeded'],
        ...['transferToken', 'urlToken'],
      ],
    ]);
  },
);

interface Line {
  readonly type: string;
  readonly name?: string;
  readonly verdict?: string;
  readonly passed?: boolean;
  readonly response?: object;
}

/** Runs a command of the tarball by npx in a folder of its own, against an endpoint, and returns what it prints as JSON. */
async function npxJson(folder: string, listen: RequestListener, args: readonly string[], env = {}): Promise<Line[]> {
  const url = await serveForTest(listen);
  const all = ['--yes', '--offline', `file:${inject('sandboxTarball')}`, ...args, '--to', url, '--json'];
  const names = Object.entries(env).map(([name, value]) => `${name}=${String(value)}`);
  // A check ends with 1 where it finds anything.
  const command = ['-c', 'env "$@" || test $? = 1', 'sh', ...names, 'npx', ...all];
  const printed = await run('sh', command, folder);
  return printed
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);
}

/** An endpoint that acknowledges whatever is signed rightly. */
const believing =
  (header: string, algorithm: string, key: string): RequestListener =>
  (request, response) => {
    const hmac = createHmac(algorithm, key);
    request.on('data', (bytes: Buffer) => hmac.update(bytes));
    request.on('end', () => response.writeHead(request.headers[header] === hmac.digest('hex') ? 200 : 401).end());
  };

const verdictsOf = (lines: readonly Line[], rows: readonly string[]) =>
  rows.map((row) => lines.find(({ name: each }) => each === row)?.verdict);

test('npx runs its command offline, from the tarball', async () => {
  const { version } = await readJson<Manifest>(join(repository, 'sandbox', 'package.json'));
  const folder = join(workshop, 'empty');
  await mkdir(folder);
  const printed = await run('npx', ['--yes', '--offline', `file:${inject('sandboxTarball')}`, '--version'], folder);
  expect(printed.trim()).toBe(version);
  const lines = await npxJson(folder, (request, response) => request.resume().on('end', () => response.end()), [
    ...['trigger', 'lost-attempts'],
  ]);
  const responses = lines.flatMap(({ type, response }) => (type === 'attempt' ? [response] : []));
  expect(responses).toMatchObject([{ error: 'lost' }, { error: 'lost' }, { status: 200 }]);
});

test.each([
  ['mjs', `import { defineService, hmacSignature } from '${name}'; export const service =`],
  ['cjs', `const { defineService, hmacSignature } = require('${name}'); exports.service =`],
])(
  'npx speaks another service in an empty folder, by a definition in .%s that loads the package',
  async (ending, load) => {
    const listen = believing('x-signature', 'sha256', 'the-secret-of-the-service');
    const folder = join(workshop, `service-${ending}`);
    await mkdir(folder);
    const definition = `${load} defineService({
      read: ({ state, id, reference }) => ({ state, id, externalId: reference }),
      states: { paid: 'SUCCESS', bounced: 'FAILED' },
      verify: hmacSignature({ header: 'x-signature', secrets: 'the-secret-of-the-service' }),
    });`;
    const toSample = (state: string): string => JSON.stringify({ state, id: 7, reference: 'payout-17' });
    await writeFile(join(folder, `service.${ending}`), definition);
    await writeFile(join(folder, 'paid.json'), toSample('paid'));
    await writeFile(join(folder, 'bounced.json'), toSample('bounced'));
    const service = ['--service', `./service.${ending}`, '--success', 'paid.json', '--failed', 'bounced.json'];
    expect((await npxJson(folder, listen, ['trigger', 'duplicate', ...service])).at(-1)?.passed).toBe(true);
    const rows = await npxJson(folder, listen, ['check', ...service]);
    expect(verdictsOf(rows, ['success', 'duplicate', 'forged', 'unbookable'])).toEqual([
      ...['right', 'right', 'right', 'less strict'],
    ]);
  },
);

test('npx checks an endpoint of a service by its name in an empty folder', async () => {
  const key = 'sk_test_of_an_endpoint';
  const folder = join(workshop, 'named');
  await mkdir(folder);
  const listen = believing('x-paystack-signature', 'sha512', key);
  const lines = await npxJson(folder, listen, ['check', '--service', 'paystack'], { CALLBACK_SECRET: key });
  expect(lines[0]).toMatchObject({ type: 'service', service: 'paystack', isSeenLive: false });
  expect(verdictsOf(lines, ['success', 'reversed', 'forged'])).toEqual(['right', 'right', 'right']);
});

test.each(['mts', 'cts'])(
  'the types of both packages compile strictly, and those of either fit the functions of the other, in .%s',
  async (ending) => {
    const folder = beside(ending);
    await mkdir(folder);
    const options = { strict: true, module: 'nodenext', target: 'es2022', lib: ['es2023'], types: ['node'] };
    const compilerOptions = { ...options, noEmit: true, skipLibCheck: false, exactOptionalPropertyTypes: true };
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }));
    await writeFile(
      join(folder, `main.${ending}`),
      `import { transferCallbackReceiver, transferCallbackListener, memoryStore, type TransferCallback } from 'transfer-callbacks/node';
       import { defineService, transferService } from 'transfer-callbacks/client';
       import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
       import * as sandbox from '${name}';
       const options = { store: memoryStore(), onSuccess: () => undefined, onFailed: () => undefined };
       const receiver = transferCallbackReceiver(options);
       export const outcomes = [receiver.receive(sandbox.transferSucceeded()), receiver.receive(sandbox.transferFailed())];
       const app = transferCallbackListener(options);
       export const delivered = [sandbox.deliver(app, transferSucceeded()), sandbox.deliver(app, transferFailed())];
       const service = defineService({ read: (id: number) => ({ state: 1, id, externalId: id }), states: { 1: 'SUCCESS', 2: 'FAILED' } });
       export const signed = sandbox.deliver(app, 7, { service });
       export const callbacks: TransferCallback[] = [sandbox.transferSucceeded({ amount: 1 }), sandbox.transferFailed()];
       export const serviceOf = ({ baseUrl, keys }: sandbox.TransferSandbox) => transferService({ baseUrl, ...keys.valid });
       // @ts-expect-error An amount is a number.
       sandbox.transferSucceeded({ amount: '1' });`,
    );
    expect(await compile(folder, join(repository, 'node_modules', 'typescript'))).toEqual([]);
  },
  stepMs,
);
