import { execFile } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { hostsFolder } from './hosts.js';

const run = promisify(execFile);
const modules = join(hostsFolder, 'node_modules');
/** A copy of the lock file that the installed packages are of. */
const mark = join(modules, '.installed-package-lock.json');

/** Installs the packages of examples/hosts, where they are not, and this package out of the tarball. */
export async function installHosts(tarball: string): Promise<void> {
  const lock = await readFile(join(hostsFolder, 'package-lock.json'), 'utf8');
  if ((await readFile(mark, 'utf8').catch(() => undefined)) !== lock) await installPackages(lock);
  const own = join(modules, 'transfer-callbacks');
  await rm(own, { recursive: true, force: true });
  await mkdir(own);
  await run('tar', ['-xzf', tarball, '-C', own, '--strip-components=1']);
}

async function installPackages(lock: string): Promise<void> {
  try {
    await run('npm', ['ci', '--no-audit', '--no-fund', '--prefer-offline'], { cwd: hostsFolder });
  } catch (error) {
    const { stderr } = error as { stderr: string };
    const reason =
      /^npm error (?!(?:address|code|errno|path|port|syscall|type) )(.+)$/m.exec(stderr)?.[1] ??
      (error as Error).message;
    throw new Error(`The packages of examples/hosts cannot be installed with npm: ${reason}`, { cause: error });
  }
  await writeFile(mark, lock);
}
