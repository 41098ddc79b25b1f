import { defineConfig } from 'tsup';

const libraries = {
  index: 'src/index.ts',
  node: 'src/node.ts',
  client: 'src/client/index.ts',
  metrics: 'src/metrics/index.ts',
  sandbox: 'src/sandbox/index.ts',
  testing: 'src/testing/index.ts',
};

export default defineConfig({
  entry: { ...libraries, cli: 'src/cli/index.ts' },
  format: ['esm', 'cjs'],
  target: 'node20',
  // The command line is run, not imported: it needs no types.
  dts: { entry: libraries },
  clean: true,
  // One copy of every module, whatever subpath it was reached through.
  splitting: true,
});
