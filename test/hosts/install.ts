import { execFile } from 'node:child_process';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { installPackages } from '../support/helpers/install.js';
import { hostsFolder } from './programs.js';

/** Installs the packages of examples/hosts, where they are not, and this package out of the tarball. */
export async function installHosts(tarball: string): Promise<void> {
  await installPackages(hostsFolder);
  const own = join(hostsFolder, 'node_modules', 'transfer-callbacks');
  await rm(own, { recursive: true, force: true });
  await mkdir(own);
  await promisify(execFile)('tar', ['-xzf', tarball, '-C', own, '--strip-components=1']);
}
