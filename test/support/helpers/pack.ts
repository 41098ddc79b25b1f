import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The file of transfer-callbacks, as it would be published. */
    tarball: string;
    /** That of transfer-sandbox. */
    sandboxTarball: string;
  }
}

const repository = fileURLToPath(new URL('../../..', import.meta.url));
const leftOut = new Set(['node_modules', '.git', '.test', '.next', 'dist', 'coverage']);

/** Packs a copy into `folder`, so that building it leaves the `dist` of the working tree alone. */
export async function pack(folder: string) {
  const copy = join(folder, 'repository');
  await mkdir(copy, { recursive: true });
  for (const name of await readdir(repository)) {
    const filter = (path: string): boolean => !leftOut.has(basename(path));
    await cp(join(repository, name), join(copy, name), { recursive: true, filter });
  }
  await symlink(join(repository, 'node_modules'), join(copy, 'node_modules'));
  const both = ['--workspaces', '--include-workspace-root'];
  await promisify(execFile)('npm', ['pack', ...both, '--pack-destination', folder], { cwd: copy });
  return findPacked(folder);
}

/** Finds the tarballs of both packages in a folder. */
export async function findPacked(folder: string) {
  const files = await readdir(folder);
  const find = (name: string): string => {
    const file = files.find((each) => each.startsWith(`${name}-`) && each.endsWith('.tgz'));
    if (file === undefined) throw new Error(`There is no tarball of ${name} in ${folder}.`);
    return join(folder, file);
  };
  return { tarball: find('transfer-callbacks'), sandboxTarball: find('transfer-sandbox') };
}
