import { createRequire } from 'node:module';
import type { Program } from '../../../src/cli/program.js';
import * as check from './check/check.js';
import { secretVariable } from '../services/load-by-name.js';
import * as sandbox from './sandbox.js';
import * as trigger from './trigger.js';

const help = `Usage: transfer-sandbox [command] [options]

Commands:
  check      Play the cases of the service against any callback endpoint
  sandbox    Run the transfer service, imitated from its documentation (default)
  trigger    Play one transfer of a scenario against a callback endpoint

None needs a configuration or touches production: callbacks stay on this machine
without --allow-other-hosts.

  transfer-sandbox help <command>    Options of a command (-h, --help)
  transfer-sandbox --version         The version of the package (-v)
`;

/** The command line of this package. */
export const program: Program = {
  name: 'transfer-sandbox',
  // By the package's own name: the way to the file differs between src and dist.
  version: () => (createRequire(import.meta.url)('transfer-sandbox/package.json') as { version: string }).version,
  help,
  commands: new Map(Object.entries({ check, sandbox, trigger })),
  defaultCommand: 'sandbox',
  flags: {
    check: { callbackHeaders: '--header', secret: secretVariable },
    sandbox: { finalAfterMs: '--final-after', callbackHeaders: '--header' },
    trigger: { callbackHeaders: '--header', scenario: '<scenario>', secret: secretVariable },
  },
  // It ends with the code of a verdict.
  needNoReader: ['check', 'trigger'],
  failureCodes: { check: 2 },
};
