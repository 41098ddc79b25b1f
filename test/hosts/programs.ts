import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of the examples, which has packages of its own. */
export const hostsFolder = fileURLToPath(new URL('../../examples/hosts', import.meta.url));

const lock = JSON.parse(readFileSync(join(hostsFolder, 'package-lock.json'), 'utf8')) as {
  packages: Record<string, { version: string } | undefined>;
};

/** Returns the version of a package of the hosts. `path` is its key in the `packages` of package-lock.json. */
export const findVersion = (path: string): string => lock.packages[path]?.version ?? '';

export const withTsx = (...rest: string[]): string[] => [process.execPath, '--import', 'tsx', ...rest];

/** Returns the path of a program that comes in a package for this platform. */
export function findProgram(name: string, paths: Readonly<Record<string, string>>): string {
  const path = paths[`${process.platform}-${process.arch}`];
  if (path !== undefined && existsSync(join(hostsFolder, path))) return path;
  throw new Error(`The packages of examples/hosts have no ${name} for ${process.platform} on ${process.arch}.`);
}
