import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { storeContract } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  compile,
  install,
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

/** The oldest and the newest compiler. This repository has one between them. */
const versions = { '5.4': '5.4.5', '7': '7.0.2' } as const;

const [oldest = expect.fail('There are no projects.')] = roots;
const newest = roots.at(-1) ?? oldest;

let workshop: string;

beforeAll(async () => {
  workshop = await makeWorkshop();
  const compilers = join(workshop, 'compilers');
  await mkdir(compilers);
  const aliases = Object.entries(versions).map(([name, version]) => [
    `typescript-${name}`,
    `npm:typescript@${version}`,
  ]);
  await Promise.all([
    ...roots.map((root) => installIn(workshop, root)),
    install(compilers, { dependencies: Object.fromEntries(aliases) as object }),
  ]);
}, stepMs);

afterAll(() => rm(workshop, { recursive: true, force: true }));

/** The one of `npm run typecheck`, which compares test/types with the types of Express 5. */
const ownCompiler = join(repository, 'node_modules', 'typescript');

const compiler = (version: keyof typeof versions): string =>
  join(workshop, 'compilers', 'node_modules', `typescript-${version}`);

describe.each(roots)('a project on $title (express $express, zod $zod)', (root) => {
  const { express } = root;
  const at = (...path: string[]): string => join(workshop, root.folder, ...path);

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

  test(
    'compiles strictly in TypeScript, declarations included, and receives callbacks',
    async () => {
      expect(await compile(at(), ownCompiler, '--rootDir', '.', '--outDir', 'out')).toEqual([]);
      for (const ending of ['mjs', 'cjs']) {
        expect(JSON.parse(await run(process.execPath, [join('out', `main.${ending}`)], at()))).toEqual({
          express,
          manifest: packageName,
          responses: [
            [200, 'processed', null],
            [200, 'duplicate', null],
            [503, true, '7'],
            [400, true, null],
          ],
          seen: [['transfer.success', 'payout-1']],
          outcomes: ['processed', 'duplicate', 'retry_later', 'invalid'],
          ownError: true,
        });
      }
    },
    stepMs,
  );
});

test(
  'with the oldest types of Express 4, too, the types accept and refuse what test/types shows',
  async () => {
    const project = join(workshop, 'types');
    await mkdir(project);
    const expressTypes = join(workshop, oldest.folder, 'node_modules/@types/express/index.d.ts');
    const paths = {
      'transfer-callbacks': [join(repository, 'src/index.ts')],
      'transfer-callbacks/*': [join(repository, 'src/*.ts')],
      express: [expressTypes],
    };
    const typeRoots = [join(repository, 'node_modules/@types')];
    const folder = join(repository, 'test/types');
    // `clients.ts` takes most of the time and does not use Express.
    const files = (await readdir(folder)).filter((file) => file !== 'clients.ts').map((file) => join(folder, file));
    const config = {
      extends: join(repository, 'tsconfig.json'),
      compilerOptions: { paths, typeRoots },
      include: [],
      files,
    };
    await writeFile(join(project, 'tsconfig.json'), JSON.stringify(config));
    expect(await compile(project, ownCompiler)).toEqual([]);
    const listed = await run(
      process.execPath,
      [join(ownCompiler, 'bin/tsc'), '--project', '.', '--listFilesOnly'],
      project,
    );
    expect(listed.match(/.*\/@types\/express\/index\.d\.ts$/gm)).toEqual([expressTypes]);
  },
  stepMs,
);

// What does not depend on the peers.
describe('a project', () => {
  const at = (...path: string[]): string => join(workshop, newest.folder, ...path);

  test.each([
    ['import', 'module', (name: string) => `import '${name}';`],
    ['require', 'commonjs', (name: string) => `require('${name}');`],
  ])('the project loads with %s only Express, zod and the root entry', async (_, type, load) => {
    const peers = await loadedBy(type, load('express') + load('zod') + load('zod/v4'));
    const all = await loadedBy(type, load(packageName));
    const added = [...all].filter((path) => !peers.has(path));
    expect(added.filter((path) => !path.includes(`/node_modules/${packageName}/dist/`))).toEqual([]);
    expect(added.filter((path) => /\/dist\/(testing|client|metrics)\b/.test(path))).toEqual([]);
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

  test('the project exports a value of everything that the package exports, so that its types are written down', async () => {
    const source = await readFile(at('exports.mts'), 'utf8');
    const used = [...source.matchAll(/\b(?:root|client|metrics|testing)\.(\w+)/g)].map(([, name]) => name);
    const program = `
      const modules = await Promise.all(${JSON.stringify(await readEntries(at()))}.map((name) => import(name)));
      console.log(JSON.stringify(modules.flatMap(Object.keys)));`;
    const names = JSON.parse(await run(process.execPath, ['--input-type=module', '--eval', program], at())) as string[];
    expect(names.filter((name) => !used.includes(name))).toEqual([]);
  });

  test('has a command', async () => {
    const { version } = await readJson<Manifest>(at('node_modules', packageName, 'package.json'));
    expect((await run('npx', ['--no', '--', packageName, '--version'], at())).trim()).toBe(version);
  });

  test.each(['5.4', '7'] as const)(
    'TypeScript %s accepts every declaration of the package and writes those of an app, as an ES module and as CommonJS',
    async (version) => {
      // Without emitting declarations TypeScript 5.4 does not miss the names that they need.
      const written = ['--emitDeclarationOnly', '--rootDir', '.', '--outDir', `types-${version}`];
      expect(await compile(at(), compiler(version), ...written)).toEqual([]);
    },
    stepMs,
  );
});
