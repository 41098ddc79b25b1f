import { createRequire } from 'node:module';
import { cpus, totalmem } from 'node:os';

const require = createRequire(import.meta.url);

/** The version of an installed package. Not every package exports its package.json. */
export function versionOf(name) {
  for (const folder of require.resolve.paths(name)) {
    try {
      return require(`${folder}/${name}/package.json`).version;
    } catch {
      // The next folder.
    }
  }
  throw new Error(`${name} is not installed: run npm ci here and in the folder above.`);
}

/** Node, the processor and the time: what a figure means nothing without. Names no host. */
export function describeMachine() {
  return {
    node: process.version,
    processor: `${cpus().length} × ${cpus()[0].model.trim()}`,
    memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    date: new Date().toISOString().slice(0, 10),
  };
}
