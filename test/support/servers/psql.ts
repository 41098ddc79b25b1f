import { findNeeded, installOnly } from './programs.js';

/** The packages of PostgreSQL for the tests have servers only. */
export const findPsql = () =>
  findNeeded({
    what: 'a psql on the PATH',
    howToGetIt:
      '`apt install postgresql-client` on Debian and Ubuntu, `brew install libpq` on macOS, `apk add postgresql-client` on Alpine.',
    names: ['psql'],
    debian: {
      name: 'psql',
      path: 'usr/lib/postgresql/18/bin/psql',
      download: [...installOnly, 'postgresql-client-18'],
      without: ['debconf', 'openssl', 'openssl-provider-legacy', 'perl', 'postgresql-client-common', 'sensible-utils'],
      release: 'sid',
      megabytes: 20,
    },
  });
