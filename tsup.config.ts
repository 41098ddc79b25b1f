import { transform } from 'esbuild';
import { existsSync, readFileSync } from 'node:fs';
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import { defineConfig, type Options } from 'tsup';

/** Runs in the folder of either package. What the sandbox imports of `../src` is built into it. */
const { exports, name: packageName } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  exports: Record<string, unknown>;
  name: string;
};

/** The sources of the entries in package.json, by the names of the files that are built from them. */
const libraries = Object.fromEntries(
  Object.keys(exports)
    .filter((path) => path !== './package.json')
    .map((path) => {
      const name = path === '.' ? 'index' : path.slice(2);
      return [name, `src/${name}.ts`];
    }),
);

/**
 * Entries that nothing imports, so that their code becomes chunks. A bundler leaves out Express where an app imports the
 * index without the router. The others cut the code into files of less than 32 kB: gzip looks back that far, so that the
 * same code as CommonJS, which follows in the tarball, costs next to nothing. All of them save 35 kB of it.
 */
const seams = [
  'http/router',
  'core/receive',
  'core/claim/lines',
  'stores/sql/claims',
  'stores/sql/mysql2',
  'client/service/define',
  'client/reconcile/reconcile',
  'testing/store-round',
  'testing/store-periods',
].filter((path) => existsSync(`src/${path}.ts`));
const seamEntries = Object.fromEntries(seams.map((path) => [`seam-${basename(path)}`, `src/${path}.ts`]));

const target = 'node20';

const console = 'src/service/console';

/** The browser runs these files as they are. */
const shipped = new Set(['', '.html', '.css', '.js', '.svg']);

/** The types are there once: ES modules may import those of CommonJS, but not the other way round. */
const types: Options = { entry: libraries, format: 'cjs', dts: { only: true } };

/** The definitions of examples/services that the sandbox ships import the receiver. The sandbox has what they need of it. */
const alias =
  packageName === 'transfer-sandbox'
    ? { 'transfer-callbacks': './src/index.ts', 'transfer-callbacks/client': './src/index.ts' }
    : {};

const code = (outDir: string): Options => ({
  // The command line is run, not imported.
  entry: { ...libraries, cli: 'src/cli/index.ts', ...seamEntries },
  format: 'esm',
  target,
  // Without the prefix, only Node knows its modules by their bare names for sure.
  removeNodeProtocol: false,
  // One copy of every module, whatever subpath it was reached through.
  splitting: true,
  esbuildOptions(options) {
    options.alias = alias;
  },
  async onSuccess() {
    for (const name of Object.keys(seamEntries)) await rm(join(outDir, `${name}.js`)); // The other entries have the chunks.
    await mkdir(join(outDir, 'cjs'), { recursive: true });
    await writeFile(join(outDir, 'cjs/package.json'), '{ "type": "commonjs", "sideEffects": false }\n');
    for (const name of await readdir(outDir)) {
      // Only the command line imports what has another name.
      const isImported = name.startsWith('chunk-') || Object.hasOwn(libraries, name.slice(0, -'.js'.length));
      if (name.endsWith('.js') && isImported) await writeCommonJs(outDir, name);
    }
    for (const name of Object.keys(libraries)) {
      await writeFile(join(outDir, `${name}.d.ts`), `export * from './${name}.cjs';\n`);
    }
    const filter = (path: string): boolean => shipped.has(extname(path));
    if (existsSync(console)) await cp(console, join(outDir, 'console'), { recursive: true, filter });
  },
});

/** Writes an ES module once more as CommonJS. The one that tsup writes has no `?.` and `??`, and is a tenth slower. */
async function writeCommonJs(outDir: string, name: string): Promise<void> {
  // A definition of examples/services is there as an ES module alone.
  const module = (await readFile(join(outDir, name), 'utf8')).replaceAll(/\bimport\("\.\/(?!chunk-)/g, 'import("../');
  // The URL of the ES module, which finds the files of the console.
  const fileUrl = `const fileUrl = new URL("../${name}", require("node:url").pathToFileURL(__filename)).href;`;
  const { code: script } = await transform(module, {
    format: 'cjs',
    platform: 'node',
    target,
    ...(module.includes('import.meta.url') && { define: { 'import.meta.url': 'fileUrl' }, banner: fileUrl }),
  });
  await writeFile(join(outDir, 'cjs', name), script);
}

/** The tests build the command line without types. */
export default defineConfig(({ outDir = 'dist', dts }) => (dts === false ? code(outDir) : [types, code(outDir)]));
