import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addSources, compile, install, installIn, makeWorkshop, repository, roots, stepMs } from './support.js';

// The types of the package in the oldest and the newest compiler. The other tests of this folder use the one of this repository.

const versions = { '5.4': '5.4.5', '7': '7.0.2' } as const;

let workshop: string;
let root: string;

beforeAll(async () => {
  workshop = await makeWorkshop();
  const newest = roots.at(-1) ?? expect.fail('There are no projects.');
  root = join(workshop, newest.folder);
  const aliases = Object.entries(versions).map(([name, version]) => [
    `typescript-${name}`,
    `npm:typescript@${version}`,
  ]);
  await mkdir(join(workshop, 'compilers'));
  await Promise.all([
    installIn(workshop, newest),
    install(join(workshop, 'compilers'), { dependencies: Object.fromEntries(aliases) as object }),
  ]);
  await addSources(root, 'typescript-nodenext', ['.mts', '.cts']);
  await addSources(root, 'typescript-node10', ['.ts']);
}, stepMs);

afterAll(() => rm(workshop, { recursive: true, force: true }));

const at = (version: keyof typeof versions): string =>
  join(workshop, 'compilers', 'node_modules', `typescript-${version}`);

test.each(['5.4', '7'] as const)(
  'TypeScript %s accepts every declaration of the package, as an ES module and as CommonJS',
  async (version) => {
    expect(await compile(join(root, 'typescript-nodenext'), at(version), '--noEmit')).toEqual([]);
  },
  stepMs,
);

test(
  'TypeScript without `exports` (moduleResolution node10) finds the types of every entry',
  async () => {
    const project = join(root, 'typescript-node10');
    for (const compiler of [at('5.4'), join(repository, 'node_modules', 'typescript')]) {
      expect(await compile(project, compiler, '--noEmit')).toEqual([]);
    }
  },
  stepMs,
);
