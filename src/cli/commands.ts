import { createRequire } from 'node:module';
import { configFile } from './config-file.js';
import * as inspect from './inspect.js';
import type { Program } from './program.js';
import * as reconcile from './reconcile.js';

const help = `Usage: transfer-callbacks <command> [options]

Commands:
  inspect    Tell what became of one transfer, and what to do. Only reads
  reconcile  Handle the final transfers whose callback never came. Runs the
             handlers of your app

Both use the service and the store of your app, production's if it is there.
They need ${configFile}, which exports them.

  transfer-callbacks help <command>    Options of a command (-h, --help)
  transfer-callbacks --version         The version of the package (-v)

The service on your machine, for development and tests: npx transfer-sandbox
`;

/** The command line of this package. */
export const program: Program = {
  name: 'transfer-callbacks',
  // By the package's own name: the way to the file differs between src and dist.
  version: () => (createRequire(import.meta.url)('transfer-callbacks/package.json') as { version: string }).version,
  help,
  commands: new Map(Object.entries({ inspect, reconcile })),
  // The lists are exports of the configuration.
  flags: { reconcile: { pending: '`pending`', paid: '`paid`' } },
  // A reconciliation handles all transfers.
  needNoReader: ['reconcile'],
  // The exit code 1 of `inspect` means that a person should look into the transfer.
  failureCodes: { inspect: 3 },
};
