import { build } from 'esbuild';
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { install, installed, makeWorkshop, packageName, repository, run, stepMs } from './support.js';

// What the package costs those who install, bundle and import it.

let workshop: string;

beforeAll(async () => {
  workshop = await makeWorkshop();
  const dependencies = {
    [packageName]: `file:${inject('tarball')}`,
    express: await installed('express'),
    zod: await installed('zod'),
  };
  await install(workshop, { type: 'module', dependencies });
}, stepMs);

afterAll(() => rm(workshop, { recursive: true, force: true }));

/** The code for ES modules and CommonJS, the types, the documents, the examples, the alerts, and the console. */
test('the tarball is small, and so are its files', async () => {
  const { size } = await stat(inject('tarball'));
  expect(size, `The tarball has ${size} bytes.`).toBeLessThan(312_000);
  const home = join(workshop, 'node_modules', packageName);
  const entries = await readdir(home, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const unpacked = (await Promise.all(files.map((file) => stat(file)))).reduce((sum, file) => sum + file.size, 0);
  expect(unpacked, `The files have ${unpacked} bytes.`).toBeLessThan(1_110_000);
});

/** What an app bundles. Express and zod are the app's own. */
test.each([
  ['memory', 41_800],
  ['redis', 43_200],
])('the minified bundle of the router and the %s store is small, and has no other store', async (store, limitBytes) => {
  const contents = `export { ${store}Store, transferCallbackRouter } from './src/index.js';`;
  const { outputFiles, metafile } = await build({
    stdin: { contents, resolveDir: repository },
    ...{ bundle: true, minify: true, write: false, metafile: true },
    ...{ format: 'esm', platform: 'node', target: 'node20', external: ['express', 'zod'] },
  });
  const size = outputFiles[0]?.contents.length ?? Infinity;
  expect(size, `The bundle has ${size} bytes.`).toBeLessThan(limitBytes);
  const bundled = Object.values(metafile.outputs).flatMap(({ inputs }) =>
    Object.entries(inputs).flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : [])),
  );
  const stores = bundled.filter((path) => path.startsWith('src/stores/'));
  expect(stores.filter((path) => !path.startsWith(`src/stores/${store}`))).toEqual([]);
  expect(stores).not.toEqual([]);
});

test(
  'to import the package takes less than a quarter of the time of Express and zod',
  async () => {
    const program = `
    const start = performance.now();
    await import('express');
    await import('zod');
    const between = performance.now();
    await import('${packageName}');
    console.log(JSON.stringify([between - start, performance.now() - between]));`;
    const rounds: [peers: number, own: number][] = [];
    for (let round = 0; round < 7; round += 1) {
      const printed = await run(process.execPath, ['--input-type=module', '--eval', program], workshop);
      rounds.push(JSON.parse(printed) as [number, number]);
    }
    // The least of each is the one that other processes have delayed least.
    const [peers, own] = [0, 1].map((index) => Math.min(...rounds.map((round) => round[index] ?? Infinity)));
    const ratio = Number(own) / Number(peers);
    expect(ratio).toBeLessThan(0.25);
  },
  stepMs,
);
