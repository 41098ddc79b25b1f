import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
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

const sqlFolder = fileURLToPath(new URL('../../sql', import.meta.url));

/** Prisma 6 has a folder of its own: its clients import packages of the same names as those of Prisma 7. */
const prismas = [
  { folder: sqlFolder, providers: ['postgresql', 'mysql', 'sqlite'], engine: '', url: '' },
  {
    folder: join(sqlFolder, 'prisma6'),
    providers: ['postgresql', 'mysql'],
    engine: 'engineType = "client"',
    url: 'url = "not used"',
  },
] as const;

/** The tables of test/sql/databases.ts. */
const models = `
model Written {
  id   Int    @id @default(autoincrement())
  name String
  @@map("written")
}
model Locked {
  name String @id
  @@map("locked")
}
`;

/** Installs the packages of test/sql, and generates the clients of Prisma, where they are not. */
export async function installSqlPackages(): Promise<void> {
  for (const { folder, providers, engine, url } of prismas) {
    await installPackages(folder);
    for (const provider of providers) {
      const schema = `
generator client {
  provider = "prisma-client-js"
  output   = "./prisma-${provider}"
  ${engine}
}
datasource db {
  provider = "${provider}"
  ${url}
}
${models}`;
      await generate(folder, provider, schema);
    }
  }
}

/** Generates a client of Prisma, as a package beside Prisma's own. */
async function generate(folder: string, provider: string, schema: string): Promise<void> {
  const modules = join(folder, 'node_modules');
  /** A copy of the schema that the client is of. */
  const mark = join(modules, `prisma-${provider}`, '.installed-schema.prisma');
  if ((await readFile(mark, 'utf8').catch(() => undefined)) === schema) return;
  const file = join(modules, `${provider}.prisma`);
  await writeFile(file, schema);
  // Prisma would download the engine of its migrations, which nothing here needs.
  const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath };
  await run(process.execPath, [join(modules, 'prisma/build/index.js'), 'generate', `--schema=${file}`], {
    cwd: folder,
    env,
  });
  await writeFile(mark, schema);
}
