import { findOnPath, findUnpacked, installOnly, type DebianProgram } from './programs.js';

/** The packages of PostgreSQL for the tests have servers only. */
export const debianPsql: DebianProgram = {
  name: 'psql',
  path: 'usr/lib/postgresql/18/bin/psql',
  download: [...installOnly, 'postgresql-client-18'],
  without: ['debconf', 'openssl', 'openssl-provider-legacy', 'perl', 'postgresql-client-common', 'sensible-utils'],
  release: 'sid',
  megabytes: 20,
};

/** Resolves with the path of a psql. Rejects with how to get one. */
export async function findPsql(): Promise<string> {
  const program = (await findOnPath('psql')) ?? (await findUnpacked(debianPsql));
  if (program !== undefined) return program;
  throw new Error(
    'The tests need a psql on the PATH, and this machine has none: `apt install postgresql-client` on Debian and Ubuntu, ' +
      '`brew install libpq` on macOS, `apk add postgresql-client` on Alpine.',
  );
}
