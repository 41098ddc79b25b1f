import { transform } from 'esbuild';
import { existsSync, readFileSync } from 'node:fs';
import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
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

/** An entry of its own is a chunk of its own: a bundler then leaves out Express where an app imports the index without the router. */
const router = 'src/http/router.ts';

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
  entry: { ...libraries, cli: 'src/cli/index.ts', ...(existsSync(router) && { router }) },
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
    await rm(join(outDir, 'router.js'), { force: true }); // Nothing imports it. The index has the chunk.
    for (const name of await readdir(outDir)) {
      // Only the command line imports what has another name.
      const isImported = name.startsWith('chunk-') || Object.hasOwn(libraries, name.slice(0, -'.js'.length));
      if (name.endsWith('.js') && isImported) await writeCommonJs(join(outDir, name));
    }
    for (const name of Object.keys(libraries)) {
      await writeFile(join(outDir, `${name}.d.ts`), `export * from './${name}.cjs';\n`);
    }
    const filter = (path: string): boolean => shipped.has(extname(path));
    if (existsSync(console)) await cp(console, join(outDir, 'console'), { recursive: true, filter });
  },
});

/** Writes an ES module once more as CommonJS. The one that tsup writes has no `?.` and `??`, and is a tenth slower. */
async function writeCommonJs(path: string): Promise<void> {
  const module = (await readFile(path, 'utf8')).replace(/"(\.\/chunk-\w+)\.js"/g, '"$1.cjs"');
  const fileUrl = 'const fileUrl = require("node:url").pathToFileURL(__filename).href;';
  const { code: script } = await transform(module, {
    format: 'cjs',
    platform: 'node',
    target,
    ...(module.includes('import.meta.url') && { define: { 'import.meta.url': 'fileUrl' }, banner: fileUrl }),
  });
  await writeFile(path.replace(/\.js$/, '.cjs'), script);
}

/** The tests build the command line without types. */
export default defineConfig(({ outDir = 'dist', dts }) => (dts === false ? code(outDir) : [types, code(outDir)]));
