import { defineConfig } from 'tsup';

export default defineConfig({
  entry: { index: 'src/index.ts', testing: 'src/testing/index.ts' },
  format: ['esm', 'cjs'],
  target: 'node20',
  dts: true,
  clean: true,
  // One copy of every module, whatever subpath it was reached through.
  splitting: true,
});
