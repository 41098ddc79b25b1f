import { build } from 'esbuild';
import { expect, test } from 'vitest';
import { repository } from './support.js';

/** What an app bundles that uses the router on the memory store. Express and zod are the app's own. */
const bundleLimitBytes = 39_500;

test('the minified bundle of the router and the memory store is small, and has no other store', async () => {
  const contents = "export { memoryStore, transferCallbackRouter } from './src/index.js';";
  const { outputFiles, metafile } = await build({
    stdin: { contents, resolveDir: repository },
    ...{ bundle: true, minify: true, write: false, metafile: true },
    ...{ format: 'esm', platform: 'node', target: 'node20', external: ['express', 'zod'] },
  });
  const size = outputFiles[0]?.contents.length ?? Infinity;
  expect(size, `The bundle has ${size} bytes.`).toBeLessThan(bundleLimitBytes);
  const bundled = Object.values(metafile.outputs).flatMap(({ inputs }) =>
    Object.entries(inputs).flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : [])),
  );
  expect(bundled.filter((path) => path.startsWith('src/stores/'))).toEqual(['src/stores/memory.ts']);
});
