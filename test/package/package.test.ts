import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { memoryStore, transferCallbackListener } from 'transfer-callbacks';
import { storeContract, transferSucceeded } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { serve } from '../support/serve.js';

// What `npm install transfer-callbacks` gives to people, tried in projects such as theirs.

interface Manifest {
  version: string;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  bundleDependencies?: unknown;
  peerDependencies: Record<string, string>;
  peerDependenciesMeta: Record<string, { optional?: boolean }>;
  exports: Record<string, unknown>;
  scripts: Record<string, string>;
}

const packageName = 'transfer-callbacks';
const here = dirname(fileURLToPath(import.meta.url));
const repository = dirname(dirname(here));
const stepMs = 240_000;
// 225 000: the code, twice for ESM and CommonJS, its types and texts; metrics, alerts and dashboard; the console of the sandbox.
const tarballLimitBytes = 225_000;

const installed = async (name: string): Promise<string> =>
  (await readJson<Manifest>(join(repository, 'node_modules', name, 'package.json'))).version;

/** The least that the peer ranges allow, and the newest that this repository has been tested with. */
const roots = [
  { title: 'the oldest peers', express: '4.18.0', types: '4.17.21', zod: '4.0.0' },
  {
    title: 'Express 4',
    express: await installed('express4'),
    types: await installed('@types/express4'),
    zod: await installed('zod'),
  },
  {
    title: 'Express 5',
    express: await installed('express'),
    types: await installed('@types/express'),
    zod: await installed('zod'),
  },
].map((root, index) => ({ ...root, folder: `root-${index}` }));

let workshop: string;
let tarball: string;

beforeAll(async () => {
  workshop = await mkdtemp(join(tmpdir(), 'transfer-callbacks-package-'));
  tarball = await pack();
  await Promise.all(roots.map(installIn));
}, stepMs);

afterAll(() => rm(workshop, { recursive: true, force: true }));

/** Packs a copy, so that building it leaves the `dist` of the working tree alone. */
async function pack(): Promise<string> {
  const copy = join(workshop, 'repository');
  const leftOut = new Set(['node_modules', '.git', 'dist', 'coverage']);
  await cp(repository, copy, { recursive: true, filter: (path) => !leftOut.has(basename(path)) });
  await symlink(join(repository, 'node_modules'), join(copy, 'node_modules'));
  await run('npm', ['pack', '--pack-destination', workshop], copy);
  const [packed, ...others] = (await readdir(workshop)).filter((path) => path.endsWith('.tgz'));
  expect(others).toEqual([]);
  return join(workshop, packed ?? expect.fail('npm pack has made no tarball'));
}

/** Makes the folder of a project with the package and its peers, and with nothing that it does not require. */
async function installIn({ folder, express, types, zod }: (typeof roots)[number]): Promise<void> {
  const root = join(workshop, folder);
  await cp(join(here, 'projects'), root, { recursive: true });
  const dependencies = {
    [packageName]: `file:${tarball}`,
    express,
    zod,
    '@types/express': types,
    '@types/node': await installed('@types/node'),
  };
  await writeFile(join(root, 'package.json'), JSON.stringify({ private: true, dependencies }));
  await run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', '--no-package-lock'], root);
}

describe('the tarball', () => {
  let home: string;
  let files: string[];
  let manifest: Manifest;

  beforeAll(async () => {
    home = join(workshop, 'root-0', 'node_modules', packageName);
    const entries = await readdir(home, { recursive: true, withFileTypes: true });
    files = entries
      .filter((entry) => entry.isFile())
      .map((entry) => relative(home, join(entry.parentPath, entry.name)))
      .sort();
    manifest = await readJson(join(home, 'package.json'));
  });

  test('the tarball contains the built files and the documents, and nothing else', () => {
    const built = files.filter((file) =>
      /^dist\/([\w-]+\.(js|cjs|d\.ts|d\.cts)|console\/[a-z]+\.(html|css|js|svg))$/.test(file),
    );
    expect(files.filter((file) => !built.includes(file))).toEqual([
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'ops/alerts.yml',
      'ops/dashboard.json',
      'package.json',
    ]);
    expect(built.map((file) => `./${file}`)).toEqual(expect.arrayContaining(targetsOf(manifest.exports)));
  });

  test('the tarball is small', async () => {
    const { size } = await stat(tarball);
    console.info(`The tarball has ${size} bytes, in ${files.length} files.`);
    expect(size).toBeLessThan(tarballLimitBytes);
  });

  test('the package has no dependencies, and no required peer except zod', () => {
    const { dependencies = {}, optionalDependencies = {}, bundleDependencies } = manifest;
    expect({ ...dependencies, ...optionalDependencies }).toEqual({});
    expect(bundleDependencies).toBeUndefined();
    const { peerDependencies: peers, peerDependenciesMeta: meta } = manifest;
    expect(Object.keys(peers).filter((peer) => meta[peer]?.optional !== true)).toEqual(['zod']);
    expect(['@types/express', 'express', 'ioredis', 'pg', 'zod']).toEqual(expect.arrayContaining(Object.keys(peers)));
  });

  test('the package runs no script when it is installed', () => {
    expect(Object.keys(manifest.scripts)).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/^(pre|post)?install$/)]),
    );
  });

  test.each(['js', 'cjs'])('the tarball has one copy of each error class in its .%s files', async (ending) => {
    const texts = await Promise.all(
      files.filter((file) => file.endsWith(`.${ending}`)).map((file) => readFile(join(home, file), 'utf8')),
    );
    const classes = [...texts.join('\n').matchAll(/\b(Transfer\w+) = class extends Error\b/g)].map(([, name]) => name);
    expect(classes.sort()).toEqual(['TransferCallbackError', 'TransferClientError']);
  });
});

describe.each(roots)('a project on $title (express $express, zod $zod)', ({ folder, express }) => {
  const at = (...path: string[]): string => join(workshop, folder, ...path);

  test('the project has no driver of any store', async () => {
    const packages = await readdir(at('node_modules'));
    expect(packages).toEqual(expect.arrayContaining([packageName, 'express', 'zod']));
    for (const driver of ['ioredis', 'iovalkey', 'redis', 'pg']) expect(packages).not.toContain(driver);
  });

  test('the project imports and requires every subpath, with the same names', async () => {
    const { exports } = await readJson<Manifest>(at('node_modules', packageName, 'package.json'));
    const modules = Object.keys(exports)
      .filter((subpath) => subpath !== './package.json')
      .map((subpath) => packageName + subpath.slice(1));
    expect(modules).toEqual(expect.arrayContaining([packageName, `${packageName}/testing`]));
    for (const module of modules) {
      const named = `import * as named from '${module}'; console.log(JSON.stringify(Object.keys(named).sort()));`;
      const required = `console.log(JSON.stringify(Object.keys(require('${module}')).sort()));`;
      const [imported, gotten] = await Promise.all([
        run(process.execPath, ['--input-type=module', '--eval', named], at()),
        run(process.execPath, ['--input-type=commonjs', '--eval', required], at()),
      ]);
      expect(JSON.parse(imported)).toEqual(JSON.parse(gotten));
      expect(JSON.parse(imported)).not.toEqual([]);
    }
  });

  test.each([
    ['import', 'module', (name: string) => `import '${name}';`],
    ['require', 'commonjs', (name: string) => `require('${name}');`],
  ])('the project loads with %s only Express, zod and the root entry', async (_, type, load) => {
    const peers = await loadedBy(type, load('express') + load('zod') + load('zod/v4'));
    const all = await loadedBy(type, load(packageName));
    const added = [...all].filter((path) => !peers.has(path));
    expect(added.filter((path) => !path.includes(`/node_modules/${packageName}/dist/`))).toEqual([]);
    expect(added.filter((path) => /\/dist\/(testing|sandbox|client|metrics)\b/.test(path))).toEqual([]);
    expect(added).not.toEqual([]);
    // Code that two entries share lies in files without a telling name.
    const texts = await Promise.all(added.map((path) => readFile(fileURLToPath(path), 'utf8')));
    for (const { title } of storeContract) expect(texts.join('\n')).not.toContain(title);
  });

  /** The files that a program has loaded: those that V8 has counted. */
  async function loadedBy(type: string, program: string): Promise<Set<string>> {
    const counts = await mkdtemp(at('counts-'));
    await run(process.execPath, [`--input-type=${type}`, '--eval', program], at(), { NODE_V8_COVERAGE: counts });
    const reports = await Promise.all(
      (await readdir(counts)).map((file) => readJson<{ result: { url: string }[] }>(join(counts, file))),
    );
    const urls = reports.flatMap(({ result }) => result.map(({ url }) => url));
    return new Set(urls.filter((url) => url.startsWith('file:') && url.includes('/node_modules/')));
  }

  test.each([
    ['module', `import { transferSandbox } from '${packageName}/sandbox';`],
    ['commonjs', `const { transferSandbox } = require('${packageName}/sandbox');`],
  ])('the sandbox serves its page, in a %s', async (type, imports) => {
    const program = `${imports} transferSandbox().then(async (sandbox) => {
      const files = ['', 'app.js', 'style.css', 'icon.svg'].map((name) => fetch(sandbox.consoleUrl + name));
      console.log(JSON.stringify((await Promise.all(files)).map(({ status }) => status)));
      await sandbox.close();
    });`;
    const printed = await run(process.execPath, [`--input-type=${type}`, '--eval', program], at());
    expect(JSON.parse(printed)).toEqual([200, 200, 200, 200]);
  });

  const answers = [
    [200, 'processed', null],
    [200, 'duplicate', null],
    [503, true, '7'],
    [400, true, null],
  ];
  const report = { express, manifest: packageName, answers, seen: [['transfer.success', 'payout-1']], ownError: true };

  test('receives callbacks in CommonJS', async () => {
    expect(JSON.parse(await run(process.execPath, ['main.js'], at('javascript-cjs')))).toEqual(report);
  });

  test('receives callbacks in ES modules, and knows a RetryLater of the CommonJS copy by its code', async () => {
    expect(JSON.parse(await run(process.execPath, ['main.js'], at('javascript-esm')))).toEqual({
      ...report,
      ownError: false,
    });
  });

  test.each([
    ['ES modules', 'commonjs', (name: string) => `const { prometheusMetrics } = await import('${name}/metrics');`],
    ['CommonJS', 'module', (name: string) => `const { prometheusMetrics } = require('${name}/metrics');`],
  ])('the metrics of %s count the deliveries of a receiver of the other kind', async (_, other, load) => {
    const program = `
      import { createRequire } from 'node:module';
      const require = createRequire(process.cwd() + '/');
      const prom = require(${JSON.stringify(join(repository, 'node_modules', 'prom-client'))});
      ${load(packageName)}
      const root = '${other}' === 'module' ? await import('${packageName}') : require('${packageName}');
      const { transferSucceeded } = await import('${packageName}/testing');
      const stop = prometheusMetrics({ ...prom, registers: [prom.register] });
      const nothing = () => undefined;
      const receiver = root.transferCallbackReceiver({
        store: root.memoryStore(), onSuccess: nothing, onFailed: nothing, logger: false,
      });
      await receiver.receive(transferSucceeded(), { source: 'http' });
      const counted = await prom.register.getSingleMetricAsString('transfer_callbacks_deliveries_total');
      stop();
      console.log(counted);`;
    const printed = await run(process.execPath, ['--input-type=module', '--eval', program], at());
    expect(printed).toContain('transfer_callbacks_deliveries_total{outcome="processed",source="http"} 1\n');
  });

  test('has a command that plays a transfer of the sandbox against the app', async () => {
    const { version } = await readJson<Manifest>(at('node_modules', packageName, 'package.json'));
    const npx = (...args: string[]): Promise<string> => run('npx', ['--no', '--', packageName, ...args], at());
    expect((await npx('--version')).trim()).toBe(version);
    const listener = transferCallbackListener({
      store: memoryStore(),
      onSuccess: () => undefined,
      onFailed: () => undefined,
      logger: false,
    });
    const { url, close } = await serve(listener);
    try {
      const printed = await npx('trigger', 'lost-attempts', '--to', url, '--json');
      const attempts = printed
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { type: string; answer: object })
        .filter(({ type }) => type === 'attempt');
      expect(attempts.map(({ answer }) => answer)).toMatchObject([
        ...[{ error: 'lost' }, { error: 'lost' }, { status: 200 }],
      ]);
    } finally {
      await close();
    }
  });

  test.each([
    ['nodenext', ['main.mts', 'main.cts']],
    ['bundler', ['main.ts']],
  ])(
    'compiles strictly and receives callbacks in TypeScript, with %s resolution',
    async (resolution, sources) => {
      const project = at(`typescript-${resolution}`);
      for (const source of sources) await cp(at('main.ts'), join(project, source));
      const compiler = join(repository, 'node_modules', 'typescript', 'bin', 'tsc');
      expect(await run(process.execPath, [compiler, '--project', project], project)).toBe('');
      for (const source of sources) {
        const program = join('out', source.replace('ts', 'js'));
        expect(JSON.parse(await run(process.execPath, [program], project))).toEqual({
          ...report,
          outcomes: ['processed', 'duplicate', 'retry_later', 'invalid'],
        });
      }
    },
    stepMs,
  );
});

describe('a project without Express', () => {
  const at = (...path: string[]): string => join(workshop, 'without-express', ...path);
  const subpath = `${packageName}/node`;

  beforeAll(async () => {
    await mkdir(at());
    const { zod } = roots[0] ?? expect.fail('there are no roots');
    const dependencies = {
      [packageName]: `file:${tarball}`,
      zod,
      '@types/node': await installed('@types/node'),
    };
    await writeFile(at('package.json'), JSON.stringify({ private: true, type: 'module', dependencies }));
    await run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', '--no-package-lock'], at());
  }, stepMs);

  test('the project has no Express', async () => {
    expect(await readdir(at('node_modules'))).not.toContain('express');
    expect(await readdir(at('node_modules', '@types'))).not.toContain('express');
  });

  const program = `
    const received = [];
    const note = ({ data }) => received.push(data.externalId);
    const listener = transferCallbackListener({ store: memoryStore(), onSuccess: note, onFailed: note, logger: false });
    const server = createServer(listener).listen(0, '127.0.0.1', async () => {
      const body = process.env.BODY;
      const headers = { 'content-type': 'application/json', connection: 'close' };
      const url = 'http://127.0.0.1:' + server.address().port;
      const response = await fetch(url, { method: 'POST', body, headers });
      console.log(JSON.stringify([response.status, received]));
      server.close();
    });`;
  test.each([
    [
      'ES modules',
      'module',
      `import { createServer } from 'node:http'; import { memoryStore, transferCallbackListener } from '${subpath}';`,
    ],
    [
      'CommonJS',
      'commonjs',
      `const { createServer } = require('node:http'); const { memoryStore, transferCallbackListener } = require('${subpath}');`,
    ],
  ])('the listener receives callbacks in %s', async (_, type, imports) => {
    const BODY = JSON.stringify(transferSucceeded({ externalId: 'payout-1' }));
    const printed = await run(process.execPath, [`--input-type=${type}`, '--eval', imports + program], at(), { BODY });
    expect(JSON.parse(printed)).toEqual([200, ['payout-1']]);
  });

  test('the package has every export except the router', async () => {
    const names = `console.log(JSON.stringify(Object.keys(await import('${subpath}'))))`;
    const here = JSON.parse(await run(process.execPath, ['--input-type=module', '--eval', names], at())) as string[];
    const whole = Object.keys(await import('transfer-callbacks'));
    expect([...here, 'transferCallbackRouter'].sort()).toEqual(whole.sort());
  });

  test('compiles strictly in TypeScript, declarations included', async () => {
    const options = { strict: true, module: 'nodenext', types: ['node'], noEmit: true, skipLibCheck: false };
    await writeFile(at('tsconfig.json'), JSON.stringify({ compilerOptions: { ...options, lib: ['es2023'] } }));
    await writeFile(
      at('main.ts'),
      `import { createServer } from 'node:http';
       import { memoryStore, transferCallbackListener, type TransferCallbackOptions } from '${subpath}';
       const options: TransferCallbackOptions = {
         store: memoryStore(),
         onSuccess: ({ data }) => data.externalId,
         onFailed: ({ data }) => data.failureReason,
       };
       createServer(transferCallbackListener(options));`,
    );
    const compiler = join(repository, 'node_modules', 'typescript', 'bin', 'tsc');
    expect(await run(process.execPath, [compiler, '--project', at()], at())).toBe('');
  });
});

/** Runs a program to its end and returns what it printed; if it fails, so does the test, with all of its output. */
async function run(file: string, args: string[], cwd: string, env: NodeJS.ProcessEnv = {}): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(file, args, {
      cwd,
      env: { ...process.env, NODE_OPTIONS: '', ...env },
      timeout: stepMs / 2,
      killSignal: 'SIGKILL',
      maxBuffer: 16 * 1024 * 1024,
    });
    return stdout;
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`${file} ${args.join(' ')} failed in ${cwd}:\n${stdout}\n${stderr}`, { cause: error });
  }
}

async function readJson<T>(path: string): Promise<T> {
  return JSON.parse(await readFile(path, 'utf8')) as T;
}

/** Every file that an `exports` map leads to. */
function targetsOf(exports: unknown): string[] {
  if (typeof exports === 'object' && exports !== null) return Object.values(exports).flatMap(targetsOf);
  return typeof exports === 'string' && exports.startsWith('./dist/') ? [exports] : [];
}
