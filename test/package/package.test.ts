import { build } from 'esbuild';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { keyPairs, toPem } from '../http/verifiers/keys.js';
import { findLinks, type Link } from '../docs/pages.js';
import {
  compile,
  install,
  installed,
  makeWorkshop,
  oldest,
  packageName,
  readJson,
  repository,
  run,
  stepMs,
  type Manifest,
} from './support.js';

// What the package holds, and that it works where nothing is installed with it but zod.

let workshop: string;

beforeAll(async () => {
  workshop = await makeWorkshop();
  const root = join(workshop, 'without-express');
  await mkdir(root);
  const dependencies = {
    [packageName]: `file:${inject('tarball')}`,
    zod: oldest.zod,
    '@types/node': await installed('@types/node'),
  };
  await install(root, { type: 'module', dependencies });
}, stepMs);

afterAll(() => rm(workshop, { recursive: true, force: true }));

describe('the tarball', () => {
  let home: string;
  let files: string[];
  let manifest: Manifest;

  beforeAll(async () => {
    home = join(workshop, 'without-express', 'node_modules', packageName);
    const entries = await readdir(home, { recursive: true, withFileTypes: true });
    files = entries
      .filter((entry) => entry.isFile())
      .map((entry) => relative(home, join(entry.parentPath, entry.name)))
      .sort();
    manifest = await readJson(join(home, 'package.json'));
  });

  test('the tarball contains the built files and the documents, and nothing else', async () => {
    const built = files.filter((file) => /^dist\/(cjs\/package\.json|(cjs\/)?[\w-]+\.js|[\w-]+\.d\.c?ts)$/.test(file));
    const others = files.filter((file) => !built.includes(file));
    expect(others.filter((file) => !/^(docs\/([a-z-]+\.md|images\/attempts-\w+\.svg)$|examples\/)/.test(file))).toEqual(
      [
        'CHANGELOG.md',
        'LICENSE',
        'README.md',
        'SECURITY.md',
        'ops/alerts.yml',
        'ops/dashboard.json',
        'package.json',
        'skills/transfer-callbacks/SKILL.md',
      ],
    );
    expect(others).toEqual(expect.arrayContaining(await listDocuments()));
    expect(others.filter((file) => /node_modules|\.next|package-lock/.test(file))).toEqual([]);
    expect(built.map((file) => `./${file}`)).toEqual(expect.arrayContaining(targetsOf(manifest.exports)));
  });

  /** The code for ES modules and CommonJS, the types, the documents, the examples, and the alerts. */
  test('the tarball is small, and so are its files', async () => {
    const { size } = await stat(inject('tarball'));
    expect(size, `The tarball has ${size} bytes.`).toBeLessThan(325_000);
    const sizes = await Promise.all(files.map(async (file) => (await stat(join(home, file))).size));
    const unpacked = sizes.reduce((sum, each) => sum + each, 0);
    expect(unpacked, `The files have ${unpacked} bytes.`).toBeLessThan(1_380_000);
  });

  test('the types are in the tarball once: those of ES modules lead to those of CommonJS', async () => {
    const types = files.filter((file) => file.endsWith('.d.ts'));
    expect(types.length).toBeGreaterThan(5);
    for (const file of types) {
      const name = file.replace(/^dist\/(.*)\.d\.ts$/, '$1');
      expect(await readFile(join(home, file), 'utf8')).toBe(`export * from './${name}.cjs';\n`);
    }
  });

  test('every link of the README and of the documents leads somewhere in node_modules', async () => {
    const pages = await Promise.all(
      files
        .filter((path) => path.endsWith('.md'))
        .map(async (path) => ({ path, text: await readFile(join(home, path), 'utf8') })),
    );
    const links = pages.flatMap(findLinks);
    expect(links.filter(({ from }) => from === 'README.md').length).toBeGreaterThan(20);
    const isThere = ({ path }: Link): boolean => files.some((file) => file === path || file.startsWith(`${path}/`));
    expect(links.filter((link) => !isThere(link))).toEqual([]);
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

  test('the CommonJS files have the syntax of the ES modules: what replaces `?.` costs a tenth of the speed', async () => {
    const scripts = files.filter((file) => /^dist\/cjs\/.*\.js$/.test(file));
    expect(scripts.length).toBeGreaterThan(5);
    const texts = await Promise.all(scripts.map((file) => readFile(join(home, file), 'utf8')));
    expect(texts.join('\n')).toContain('?.');
    expect(texts.join('\n')).not.toMatch(/_optionalChain|_nullishCoalesce/);
  });

  test.each(['dist', 'dist/cjs'])('the tarball has one copy of each error class in the files of %s', async (folder) => {
    const texts = await Promise.all(
      files
        .filter((file) => dirname(file) === folder && file.endsWith('.js'))
        .map((file) => readFile(join(home, file), 'utf8')),
    );
    const classes = [...texts.join('\n').matchAll(/\b(Transfer\w+) = class extends Error\b/g)].map(([, name]) => name);
    expect(classes.sort()).toEqual(['TransferCallbackError', 'TransferClientError']);
  });
});

/** Bundles this code as apps do. Returns the size of the bundle in bytes, the files in it, and the modules that it imports. */
async function bundle(contents: string, external = ['express', 'zod']) {
  const { outputFiles, metafile } = await build({
    stdin: { contents, resolveDir: repository },
    ...{ bundle: true, minify: true, write: false, metafile: true },
    ...{ format: 'esm', platform: 'node', target: 'node20', external },
  });
  const [output] = Object.values(metafile.outputs);
  const files = Object.entries(output?.inputs ?? {}).filter(([, { bytesInOutput }]) => bytesInOutput > 0);
  const imports = (output?.imports ?? []).map(({ path }) => path).sort();
  return { size: outputFiles[0]?.contents.length ?? Infinity, bundled: files.map(([path]) => path), imports };
}

/** What an app bundles. Express and zod are the app's own. */
test.each([
  ['memory', 56_500],
  ['redis', 58_300],
])('the minified bundle of the router and the %s store is small, and has no other store', async (store, limitBytes) => {
  const contents = `export { ${store}Store, transferCallbackRouter } from './src/index.js';`;
  const { size, bundled } = await bundle(contents);
  expect(size, `The bundle has ${size} bytes.`).toBeLessThan(limitBytes);
  const stores = bundled.filter((path) => path.startsWith('src/stores/'));
  expect(stores.filter((path) => !path.startsWith(`src/stores/${store}`))).toEqual([]);
  expect(stores).not.toEqual([]);
});

/**
 * Functions and Workers are bundled whole. zod is two thirds of it: an import of its `z` would add 360 kB of languages.
 */
test('the minified bundle of the whole web entry, with zod, is small and has no language but English', async () => {
  const { size, bundled } = await bundle("export * from './src/web.js';", []);
  expect(size, `The bundle has ${size} bytes.`).toBeLessThan(209_500);
  const languages = bundled.filter((path) => path.includes('/locales/')).map((path) => path.replace(/.*\//, ''));
  expect(languages).toEqual(['en.js']);
});

test('a bundle of `defineService` alone has no verifier, imports nothing, and has at most 22 500 bytes', async () => {
  const { size, bundled, imports } = await bundle("export { defineService } from './src/client.js';");
  expect(imports).toEqual([]);
  expect(bundled.filter((path) => path.startsWith('src/http/'))).toEqual([]);
  expect(size, `The bundle has ${size} bytes.`).toBeLessThanOrEqual(22_500);
});

test('with `hmacSignature` a bundle of a definition imports node:crypto alone, and no other verifier', async () => {
  const { bundled, imports } = await bundle("export { defineService, hmacSignature } from './src/client.js';");
  expect(imports).toEqual(['node:crypto']);
  expect(bundled.filter((path) => /allow-list|message-signature|public-key/.test(path))).toEqual([]);
});

describe('a project without Express', () => {
  const at = (...path: string[]): string => join(workshop, 'without-express', ...path);
  const subpath = `${packageName}/node`;

  const program = `
    const received = [];
    const note = ({ data }) => received.push(data.externalId);
    const options = { onSuccess: note, onFailed: note, logger: false };
    const init = { method: 'POST', body: process.env.BODY, headers: { 'content-type': 'application/json', connection: 'close' } };
    const server = createServer(transferCallbackListener({ ...options, store: memoryStore() }));
    server.listen(0, '127.0.0.1', async () => {
      const listened = await fetch('http://127.0.0.1:' + server.address().port, init);
      server.close();
      const handle = transferCallbackHandler({ ...options, store: memoryStore() });
      const handled = await handle(new Request('http://localhost/', init));
      console.log(JSON.stringify([listened.status, handled.status, received]));
    });`;
  const imports = {
    module: (names: string, from: string) => `import { ${names} } from '${from}';`,
    commonjs: (names: string, from: string) => `const { ${names} } = require('${from}');`,
  };
  test.each(['module', 'commonjs'] as const)(
    'the listener and the handler receive callbacks without Express, in %s',
    async (type) => {
      const load = [
        imports[type]('createServer', 'node:http'),
        imports[type]('memoryStore, transferCallbackListener', subpath),
        imports[type]('transferCallbackHandler', `${packageName}/web`),
      ];
      const BODY = JSON.stringify(transferSucceeded({ externalId: 'payout-1' }));
      const args = [`--input-type=${type}`, '--eval', load.join('') + program];
      const printed = await run(process.execPath, args, at(), { BODY });
      expect(JSON.parse(printed)).toEqual([200, 200, ['payout-1', 'payout-1']]);
    },
  );

  test.each(['module', 'commonjs'] as const)('each verifier has its name in the log, in %s', async (type) => {
    const verifiers = {
      urlToken: 'SECRET',
      transferToken: 'SECRET',
      headerToken: "'x-token', SECRET",
      basicAuth: "{ username: 'service', password: SECRET }",
      ipAllowList: "['127.0.0.1']",
      hmacSignature: "{ header: 'x-signature', secrets: SECRET }",
      publicKeySignature: "{ header: 'x-signature', publicKeys: PUBLIC_KEY }",
      messageSignature: "{ url: 'https://merchant.example', publicKeys: PUBLIC_KEY }",
    };
    const made = Object.entries(verifiers).map(([name, args]) => `${name}(${args}).name`);
    const program = `${imports[type](Object.keys(verifiers).join(', '), `${packageName}/web`)}
      const { SECRET, PUBLIC_KEY } = process.env;
      console.log(JSON.stringify([${made.join(', ')}]));`;
    const variables = { SECRET: 'a-secret-of-a-test', PUBLIC_KEY: toPem(keyPairs.ed25519[0]) };
    const printed = await run(process.execPath, [`--input-type=${type}`, '--eval', program], at(), variables);
    expect(JSON.parse(printed)).toEqual(Object.keys(verifiers));
  });

  test.each([
    ['node', 'transferCallbackHandler'],
    ['web', 'transferCallbackListener'],
  ])('the entry %s has every export except the router and %s', async (entry, other) => {
    const names = `console.log(JSON.stringify(Object.keys(await import('transfer-callbacks/${entry}'))))`;
    const here = JSON.parse(await run(process.execPath, ['--input-type=module', '--eval', names], at())) as string[];
    const whole = Object.keys(await import('transfer-callbacks'));
    expect([...here, 'transferCallbackRouter', other].sort()).toEqual(whole.sort());
  });

  test('a bundle of the index without the router has no Express', async () => {
    const contents = `
      import { memoryStore, transferCallbackReceiver } from '${packageName}';
      const handler = () => undefined;
      const receiver = transferCallbackReceiver({ store: memoryStore(), onSuccess: handler, onFailed: handler, logger: false });
      receiver.receive(JSON.parse(process.env.BODY)).then(({ outcome }) => console.log(outcome));`;
    await build({
      stdin: { contents, resolveDir: at() },
      outfile: at('bundle.mjs'),
      ...{ bundle: true, format: 'esm', platform: 'node', target: 'node20', external: ['express'] },
    });
    const printed = await run(process.execPath, [at('bundle.mjs')], at(), {
      BODY: JSON.stringify(transferSucceeded()),
    });
    expect(printed).toBe('processed\n');
  });

  test(
    'compiles strictly in TypeScript, declarations included',
    async () => {
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
      expect(await compile(at(), join(repository, 'node_modules', 'typescript'))).toEqual([]);
    },
    stepMs,
  );
});

/** The pages of `docs`, which has other things in folders. */
async function listDocuments(): Promise<string[]> {
  const names = await readdir(join(repository, 'docs'));
  return names.filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`);
}

/** Every file that an `exports` map leads to. */
function targetsOf(exports: unknown): string[] {
  if (typeof exports === 'object' && exports !== null) return Object.values(exports).flatMap(targetsOf);
  return typeof exports === 'string' && exports.startsWith('./dist/') ? [exports] : [];
}
