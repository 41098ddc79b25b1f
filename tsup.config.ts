import { defineConfig } from 'tsup';

export default defineConfig({
  entry: {
    index: 'src/index.ts',
    client: 'src/client/index.ts',
    sandbox: 'src/sandbox/index.ts',
    testing: 'src/testing/index.ts',
    cli: 'src/cli.ts',
  },
  format: ['esm', 'cjs'],
  target: 'node20',
  dts: true,
  clean: true,
  // One copy of every module, whatever subpath it was reached through.
  splitting: true,
});
