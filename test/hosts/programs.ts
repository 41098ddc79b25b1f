import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { installPackages } from '../support/helpers/install.js';

/** The folder of the examples, which has packages of its own. */
export const hostsFolder = fileURLToPath(new URL('../../examples/hosts', import.meta.url));

const lock = JSON.parse(readFileSync(join(hostsFolder, 'package-lock.json'), 'utf8')) as {
  packages: Record<string, { version: string } | undefined>;
};

/** Returns the version of a package of the hosts. `path` is its key in the `packages` of package-lock.json. */
export const findVersion = (path: string): string => lock.packages[path]?.version ?? '';

export const withTsx = (...rest: string[]): string[] => [process.execPath, '--import', 'tsx', ...rest];

/** Returns the path of a program that comes in a package for this platform. */
export function findProgram(name: string): string {
  const path = `node_modules/${name}`;
  if (existsSync(join(hostsFolder, path))) return path;
  throw new Error(`The packages of examples/hosts have no ${name}.`);
}

/** Installs the packages of examples/hosts, where they are not, and this package out of the tarball. */
export async function installHosts(tarball: string): Promise<void> {
  await installPackages(hostsFolder);
  const own = join(hostsFolder, 'node_modules', 'transfer-callbacks');
  await rm(own, { recursive: true, force: true });
  await mkdir(own);
  await promisify(execFile)('tar', ['-xzf', tarball, '-C', own, '--strip-components=1']);
}
