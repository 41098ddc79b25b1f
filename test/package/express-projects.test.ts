import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { memoryStore, transferCallbackListener } from 'transfer-callbacks';
import { storeContract } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { serve } from '../support/serve.js';
import {
  addSources,
  compile,
  installIn,
  makeWorkshop,
  packageName,
  readEntries,
  readJson,
  repository,
  roots,
  run,
  stepMs,
  type Manifest,
} from './support.js';

// What `npm install transfer-callbacks` gives to people, tried in projects such as theirs.

let workshop: string;

beforeAll(async () => {
  workshop = await makeWorkshop();
  await Promise.all(roots.map((root) => installIn(workshop, root)));
}, stepMs);

afterAll(() => rm(workshop, { recursive: true, force: true }));

describe.each(roots)('a project on $title (express $express, zod $zod)', ({ folder, express }) => {
  const at = (...path: string[]): string => join(workshop, folder, ...path);

  test('the project has no driver of any store', async () => {
    const packages = await readdir(at('node_modules'));
    expect(packages).toEqual(expect.arrayContaining([packageName, 'express', 'zod']));
    for (const driver of ['ioredis', 'iovalkey', 'redis', 'pg']) expect(packages).not.toContain(driver);
  });

  test('the project imports and requires every subpath, with the same names', async () => {
    const modules = await readEntries(at());
    expect(modules).toEqual(expect.arrayContaining([packageName, `${packageName}/testing`]));
    const program = `
      const names = {};
      const load = async () => {
        for (const name of ${JSON.stringify(modules)}) {
          names[name] = [await import(name), require(name)].map((module) => Object.keys(module).sort());
        }
        console.log(JSON.stringify(names));
      };
      load();`;
    const printed = await run(process.execPath, ['--input-type=commonjs', '--eval', program], at());
    for (const [imported, required] of Object.values(JSON.parse(printed) as Record<string, string[][]>)) {
      expect(imported).toEqual(required);
      expect(imported).not.toEqual([]);
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

  const responses = [
    [200, 'processed', null],
    [200, 'duplicate', null],
    [503, true, '7'],
    [400, true, null],
  ];
  const report = {
    express,
    manifest: packageName,
    responses,
    seen: [['transfer.success', 'payout-1']],
    ownError: true,
  };

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
        .map((line) => JSON.parse(line) as { type: string; response: object })
        .filter(({ type }) => type === 'attempt');
      expect(attempts.map(({ response }) => response)).toMatchObject([
        ...[{ error: 'lost' }, { error: 'lost' }, { status: 200 }],
      ]);
    } finally {
      await close();
    }
  });

  test.each([
    ['nodenext', ['.mts', '.cts']],
    ['bundler', ['.ts']],
  ])(
    'compiles strictly and receives callbacks in TypeScript, with %s resolution',
    async (resolution, endings) => {
      const project = `typescript-${resolution}`;
      await addSources(at(), project, endings);
      const compiler = join(repository, 'node_modules', 'typescript');
      expect(await compile(at(project), compiler, '--rootDir', '.', '--outDir', 'out')).toEqual([]);
      for (const ending of endings) {
        const program = join('out', `main${ending.replace('ts', 'js')}`);
        expect(JSON.parse(await run(process.execPath, [program], at(project)))).toEqual({
          ...report,
          outcomes: ['processed', 'duplicate', 'retry_later', 'invalid'],
        });
      }
    },
    stepMs,
  );
});
