// Bundles a Worker as Cloudflare's tools do, and writes beside it how workerd is to start it at a date.
import { readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { build } from 'esbuild';
import { hostsFolder } from './programs.js';

const [, , entry = '', outfile = '', date = ''] = process.argv;

await build({
  // As a file of that folder, a Worker of the tests has its packages, too.
  stdin: { contents: await readFile(entry, 'utf8'), resolveDir: hostsFolder, loader: 'ts' },
  tsconfig: join(hostsFolder, 'tsconfig.json'),
  outfile,
  ...{ bundle: true, format: 'esm', platform: 'node', conditions: ['workerd'] },
  external: ['cloudflare:*', 'pg-native'],
  // Packages in CommonJS require the modules of Node.
  banner: { js: "import { createRequire } from 'node:module'; const require = createRequire('/');" },
});

const database = JSON.stringify({ connectionString: process.env.DATABASE_URL });
await writeFile(
  `${outfile}.capnp`,
  `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "worker", worker = .worker), (name = "internet", network = (allow = ["local", "private"]))],
  sockets = [(name = "http", http = (), service = "worker")],
);
const worker :Workerd.Worker = (
  modules = [(name = "worker.mjs", esModule = embed ${JSON.stringify(basename(outfile))})],
  compatibilityDate = ${JSON.stringify(date)},
  compatibilityFlags = ["nodejs_compat"],
  bindings = [
    (name = "CALLBACK_TOKEN", fromEnvironment = "CALLBACK_TOKEN"),
    (name = "HYPERDRIVE", json = ${JSON.stringify(database)}),
  ],
);
`,
);
