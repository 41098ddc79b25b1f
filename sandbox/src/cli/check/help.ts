import { flag, text } from '../../../../src/cli/arguments.js';
import { configFile } from '../../../../src/cli/config-file.js';
import { wrap } from '../../../../src/cli/terminal.js';
import { callbackHelp, callbackOptions } from '../endpoint-options.js';
import { kinds } from './load-service.js';
import { namedServices } from '../../services/named-services.js';
import { rows } from './rows.js';

/** From column 29 to column 80. */
const list = (words: string): string => wrap(words, 51).join(`\n${' '.repeat(29)}`);
const listed = list(`not seen live: ${Object.keys(namedServices).join(', ')}`);
const rowNames = list(rows.map(({ name }) => name).join(', '));

export const help = `Usage: transfer-sandbox check [--to URL] [options]

Plays the cases of the service against a callback endpoint, whatever it is made
with. Prints what a right endpoint does, what this one did, and what the
difference costs:

  ✓ right       ✗ lost, doubled, refunded wrongly, booked for a forger, or not
  ◌ not seen      acknowledged       ! what no document demands

Exit code 1 if something is ✗, 2 if the check could not be run, a row could not
be counted or --mend failed, 0 if not. Your app will book payouts and refunds:
give it a test database.

  --to URL                   The callback endpoint
  --config FILE              In place of --to, a module that exports callbackUrl
                             and callbackHeaders. Default:
                             ${configFile}, .js or .cjs
${callbackHelp}
  --method METHOD            POST (default), or PUT for a service that sends it
  --service NAME             Another service, as public documents show it,
                             ${listed}
  --service FILE             A module that exports your own definition, which
                             \`defineService\` has made. It may import that and
                             the verifiers from transfer-sandbox
  --success FILE             A sample of a success for it, as JSON or a form.
                             Its ids are replaced
  --failed FILE              A sample of a failure, if a state is FAILED
  --reversed FILE            A sample of a reversal, if the service has any
  --pending FILE             A sample of a state that is not final
  --event-id PATH            A value that is another one in each event, such as
                             event_id or header:x-event-id (repeatable)
  --transfer-id PATH         A value that is another one in each transfer, such
                             as data.code (repeatable)
  --port N                   Where the service answers queries, for an app that
                             asks it: http://127.0.0.1:N (default: any free
                             port), with SANDBOX_API_KEY and SANDBOX_API_SECRET
                             (default sandbox-key, sandbox-secret)
  --forged URL               The endpoint as someone calls it who has no secret:
                             it must not believe that. Default if the callbacks
                             are signed: --to with a wrong signature
  --skip ROW                 Leave a row out (repeatable):
                             ${rowNames}
  --strict                   A ! counts as wrong
  --real-time                Wait between attempts as the service does, 30 s and
                             more (default: a hundredth of that)
  --settle SECONDS           How long a booking may take (default 10)
  --patience SECONDS         How long a response may take (default 30, or what
                             the documents of the service say). Two in a row
                             that take longer cut a row short
  --json                     Print one JSON object per line

The environment variable CALLBACK_SECRET has the secret that signs the
callbacks, unless the definition has it: as your app has it, and for a public
key of your app its private key in PEM. Take secrets of a test. If the verifiers
cannot sign, give --header.

What your app did cannot be seen from outside. These commands show it. Each gets
a transfer: $ID is its externalId, $STATUS is SUCCESS, FAILED or REVERSED,
$TRANSFER_ID is the id of the service, $BODY is the first callback, and $AMOUNT
and $CURRENCY are read from it. A script gets the variables from its
environment. In cmd.exe write %ID% and double quotes, in a batch file
%%ID%%:
  --count "find /c \\"%ID% %STATUS%\\" < ledger.txt"

  --count COMMAND            Prints how often $ID was booked as $STATUS, such as
                             'grep -c "$ID $STATUS" ledger.txt'. Without $STATUS
                             it cannot tell a refund from a payment
  --prepare COMMAND          Creates its payout, where your app must know it. It
                             runs after the service has created the transfer,
                             and before the callback
  --break COMMAND            Keeps your app from booking, so that it must not
                             acknowledge: 'docker pause database'
  --mend COMMAND             Undoes that, also after Ctrl+C
`;

const several = { type: 'string', multiple: true } as const;

const each = <Name extends string, Option>(option: Option, ...names: readonly Name[]) =>
  Object.fromEntries(names.map((name) => [name, option])) as Record<Name, Option>;

export const options = {
  ...callbackOptions,
  ...each(text, 'to', 'method', 'service', ...kinds, 'port', 'forged', 'settle', 'patience'),
  ...each(text, 'count', 'prepare', 'break', 'mend'),
  ...each(several, 'event-id', 'transfer-id', 'skip'),
  ...each(flag, 'strict', 'real-time', 'json'),
};
