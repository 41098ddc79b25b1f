// What a bundle of a definition costs: a copied file needs one entry, and neither Express nor zod.
import { build } from 'esbuild';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const repository = fileURLToPath(new URL('../..', import.meta.url));

/** Returns the size of the minified bundle, the files in it, and the modules that it imports. */
async function bundle(names: string) {
  const { outputFiles, metafile } = await build({
    stdin: { contents: `export { ${names} } from './src/client.js';`, resolveDir: repository },
    ...{ bundle: true, minify: true, write: false, metafile: true },
    ...{ format: 'esm', platform: 'node', target: 'node20', packages: 'external' },
  });
  const [output] = Object.values(metafile.outputs);
  const files = Object.entries(output?.inputs ?? {}).filter(([, { bytesInOutput }]) => bytesInOutput > 0);
  const imports = (output?.imports ?? []).map(({ path }) => path).sort();
  return { size: outputFiles[0]?.contents.length ?? Infinity, files: files.map(([path]) => path), imports };
}

test('a bundle of `defineService` alone has no verifier, imports nothing, and has at most 22 500 bytes', async () => {
  const { size, files, imports } = await bundle('defineService');
  expect(imports).toEqual([]);
  expect(files.filter((path) => path.startsWith('src/http/'))).toEqual([]);
  expect(size, `The bundle has ${size} bytes.`).toBeLessThanOrEqual(22_500);
});

test('with `hmacSignature` it imports node:crypto alone, and no other verifier', async () => {
  const { files, imports } = await bundle('defineService, hmacSignature');
  expect(imports).toEqual(['node:crypto']);
  expect(files.filter((path) => /allow-list|message-signature|public-key/.test(path))).toEqual([]);
});
