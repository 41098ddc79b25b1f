import { existsSync, readFileSync } from 'node:fs';
import { cp } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { defineConfig } from 'tsup';

const { exports } = JSON.parse(readFileSync('package.json', 'utf8')) as { exports: Record<string, unknown> };

/** The sources of the entries in package.json, by the names of the files that are built from them. */
const libraries = Object.fromEntries(
  Object.keys(exports)
    .filter((path) => path !== './package.json')
    .map((path) => {
      const name = path === '.' ? 'index' : path.slice(2);
      return [name, existsSync(`src/${name}.ts`) ? `src/${name}.ts` : `src/${name}/index.ts`];
    }),
);

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
