import Module, { register } from 'node:module';
import { fileURLToPath } from 'node:url';

const name = 'transfer-sandbox';

/** The part of Node's loader of CommonJS that finds the file of a module. Node 20 has no public hook there. */
interface Resolver {
  _resolveFilename: (request: string, ...others: readonly unknown[]) => string;
}

/** Lets a file load this package where it is not installed: npx keeps it in another folder. */
export function lendPackage(): void {
  lendToImport(new URL('index.js', import.meta.url).href);
  lendToRequire(fileURLToPath(new URL('cjs/index.js', import.meta.url)));
}

function lendToImport(url: string): void {
  const hook = `export async function resolve(name, context, next) {
    try {
      return await next(name, context);
    } catch (error) {
      if (name !== '${name}') throw error;
      return { url: ${JSON.stringify(url)}, shortCircuit: true };
    }
  }`;
  register(`data:text/javascript,${encodeURIComponent(hook)}`);
}

function lendToRequire(path: string): void {
  const resolver = Module as unknown as Resolver;
  const resolve = resolver._resolveFilename.bind(Module);
  resolver._resolveFilename = (request, ...others) => {
    try {
      return resolve(request, ...others);
    } catch (error) {
      if (request !== name) throw error;
      return path;
    }
  };
}
