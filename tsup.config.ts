import { cp } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { defineConfig } from 'tsup';

const libraries = {
  index: 'src/index.ts',
  node: 'src/node.ts',
  web: 'src/web.ts',
  client: 'src/client/index.ts',
  metrics: 'src/metrics/index.ts',
  sandbox: 'src/sandbox/index.ts',
  testing: 'src/testing/index.ts',
};

export default defineConfig(({ outDir = 'dist' }) => ({
  entry: { ...libraries, cli: 'src/cli/index.ts' },
  format: ['esm', 'cjs'],
  target: 'node20',
  // The command line is run, not imported: it needs no types.
  dts: { entry: libraries },
  clean: true,
  // Without the prefix, only Node knows its modules by their bare names for sure.
  removeNodeProtocol: false,
  // One copy of every module, whatever subpath it was reached through.
  splitting: true,
  // Gives the CommonJS build `import.meta.url`, by which the sandbox finds the files of its console.
  shims: true,
  async onSuccess() {
    // The browser runs these files as they are.
    const shipped = new Set(['', '.html', '.css', '.js', '.svg']);
    const filter = (path: string): boolean => shipped.has(extname(path));
    await cp('src/sandbox/console', join(outDir, 'console'), { recursive: true, filter });
  },
}));
