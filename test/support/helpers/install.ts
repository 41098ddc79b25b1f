import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * Installs the packages of a folder that has a `package.json` of its own, unless those of its lock file are there. Runs
 * none of their scripts.
 */
export async function installPackages(folder: string): Promise<void> {
  const lock = await readFile(join(folder, 'package-lock.json'), 'utf8');
  /** A copy of the lock file that the installed packages are of. */
  const mark = join(folder, 'node_modules', '.installed-package-lock.json');
  if ((await readFile(mark, 'utf8').catch(() => undefined)) === lock) return;
  try {
    await run('npm', ['ci', '--no-audit', '--no-fund', '--prefer-offline', '--ignore-scripts'], { cwd: folder });
  } catch (error) {
    const { stderr } = error as { stderr: string };
    const reason =
      /^npm error (?!(?:address|code|errno|path|port|syscall|type) )(.+)$/m.exec(stderr)?.[1] ??
      (error as Error).message;
    throw new Error(`The packages of ${folder} cannot be installed with npm: ${reason}`, { cause: error });
  }
  await writeFile(mark, lock);
}
