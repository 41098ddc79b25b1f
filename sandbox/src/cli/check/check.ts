import { isAcknowledgement } from '../../attempt/attempt.js';
import { allowPositionals, flag, parseArguments, text, toNumber, UsageError } from '../../../../src/cli/arguments.js';
import { configFile, findConfigFile } from '../../../../src/cli/config-file.js';
import { wrap } from '../../../../src/cli/terminal.js';
import {
  callbackHelp,
  callbackOptions,
  findEndpoint,
  missingUrl,
  requireUrl,
  type Endpoint,
} from '../endpoint-options.js';
import { Books } from './books.js';
import { Breakage, type NamedTransfer } from './commands.js';
import { breaking, failOnce } from './handler-fails.js';
import { requireServiceValue } from './load-by-name.js';
import { namedServices } from './named-services.js';
import { Progress } from './progress.js';
import { explainKey, explainRefusal, type Refusal } from './refusal.js';
import { isWrong, report, reportOrigin } from './report.js';
import { toRows, unseenRow, type Played, type Row } from './rows.js';
import { Stage } from './stage.js';
import { startService, type RunningService } from './start-service.js';
import { judgeWire, type Tried } from './trial.js';
import { listTrials } from './trials.js';

/** From column 29 to column 80. */
const listed = wrap(`not seen live: ${Object.keys(namedServices).join(', ')}`, 51).join(`\n${' '.repeat(29)}`);

export const help = `Usage: transfer-sandbox check [--to URL] [options]

Plays the cases of the service against a callback endpoint, whatever it is made
with. Prints what a right endpoint does, what this one did, and what the
difference costs: ✓ right, ✗ wrong, ◌ not seen, ! stricter than documented.
Copies, concurrent copies and a lost response are played with SUCCESS, and with
FAILED as failed-duplicate, failed-burst and failed-lost. Exit code 0 if nothing
is wrong, 1 if something is, 2 if the check could not be run or --mend failed.

  --to URL                   The callback endpoint
  --config FILE              In place of --to, a module that exports callbackUrl
                             and callbackHeaders. Default:
                             ${configFile}, .js or .cjs
${callbackHelp}
  --service NAME             Another service, as public documents show it,
                             ${listed}
  --service FILE             A module that exports your own definition, which
                             \`defineService\` has made. It may import that and
                             the verifiers from transfer-sandbox
  --success FILE             A sample of a success for it, as JSON or a form.
                             Its ids are replaced
  --failed FILE              A sample of a failure
  --reversed FILE            A sample of a reversal, if the service has any
  --port N                   Where the service answers queries, for an app that
                             asks it: http://127.0.0.1:N (default: any free
                             port), with SANDBOX_API_KEY and SANDBOX_API_SECRET
                             (default sandbox-key, sandbox-secret)
  --stranger URL             The endpoint as someone calls it who has no secret:
                             it must not believe that. Default with --service,
                             if its verifier signs: --to without the signature
  --strict                   What is stricter than documented counts, too
  --real-time                Wait between attempts as the service does, 30 s and
                             more (default: a hundredth of that)
  --settle SECONDS           How long a booking may take (default 10)
  --patience SECONDS         How long a response may take (default 30). Two in a
                             row that take longer cut a row short
  --json                     Print one JSON object per line

The environment variable CALLBACK_SECRET has the secret that signs the
callbacks, unless the definition has it: as your app has it, and for a public
key of your app the private one in PEM. Take those of a test. What its verifiers
cannot sign needs --header.

What your app did cannot be seen from outside. These commands show it. Each gets
a transfer: $ID is its externalId, $STATUS is SUCCESS, FAILED or REVERSED,
$TRANSFER_ID is the id of the service, $AMOUNT and $CURRENCY are those of the
callback, if it has any.

  --count COMMAND            Prints how often $ID was booked as $STATUS, such as
                             'grep -c "$ID $STATUS" ledger.txt'. Without $STATUS
                             it cannot tell a refund from a payment
  --prepare COMMAND          Creates its payout, where your app must know it. It
                             runs after the service has created the transfer,
                             and before the callback. The service knows no
                             transfer of a stranger, or of a body that is not
                             documented: the variables are those of the body
                             without its fault
  --break COMMAND            Keeps your app from booking, so that it must not
                             acknowledge: 'docker pause database'
  --mend COMMAND             Undoes that, also after Ctrl+C
`;

const options = {
  ...callbackOptions,
  to: text,
  service: text,
  success: text,
  failed: text,
  reversed: text,
  port: text,
  stranger: text,
  settle: text,
  patience: text,
  count: text,
  prepare: text,
  break: text,
  mend: text,
  strict: flag,
  'real-time': flag,
  json: flag,
};

type Values = ReturnType<typeof parseArguments<typeof options>>['values'];

/** Plays all cases, and judges the endpoint. */
export async function run(args: readonly string[]): Promise<number> {
  requireServiceValue(args);
  const { values, positionals } = parseArguments(args, options);
  allowPositionals(positionals, 0, '--to');
  if ((values.break === undefined) !== (values.mend === undefined)) {
    throw new UsageError('Expected --break and --mend, or neither.');
  }
  const { stranger, strict: isStrict = false, json: isJson = false } = values;
  if (stranger !== undefined) requireUrl('--stranger', stranger, values['allow-other-hosts'] === true);
  const settleMs = toMs('--settle', values.settle, { usual: 10, least: 0 });
  const patienceMs = toMs('--patience', values.patience, { usual: 30, least: 0.1 });
  const endpoint = await findCallbackUrl(values);
  const books = values.count === undefined ? undefined : new Books(values.count, settleMs);

  const { callbackUrl } = endpoint;
  const service = await startService(values, typeof callbackUrl === 'string' ? callbackUrl : undefined);
  if (service.origin !== undefined) reportOrigin(service.origin, isJson);
  const progress = new Progress(listTrials(service.service).length + (values.break === undefined ? 0 : 1));
  try {
    const stage = new Stage(service.service, endpoint, {
      prepare: values.prepare,
      strangerUrl: stranger,
      isRealTime: values['real-time'] === true,
      patienceMs,
      say: (sentence) => {
        progress.say(sentence);
      },
    });
    const { rows, refusal, isMended } = await playAll({ stage, books, values, service, progress });
    progress.end();
    const keyRefusal = service.findKeyRefusal();
    const advice = keyRefusal === undefined ? undefined : explainKey(keyRefusal, String(service.url));
    report(rows, { isStrict, isJson, refusal, advice, unseen: findUnseen(values, books, rows) });
    if (refusal !== undefined || !isMended) return 2;
    return rows.some((row) => isWrong(row, isStrict)) ? 1 : 0;
  } finally {
    progress.end();
    await service.close();
  }
}

function toMs(name: string, value: string | undefined, { usual, least }: { usual: number; least: number }): number {
  const seconds = toNumber(name, value) ?? usual;
  if (seconds < least) throw new UsageError(`Expected ${name} to be a number of seconds from ${least} on.`);
  return 1_000 * seconds;
}

async function findCallbackUrl(values: Values): Promise<Endpoint> {
  const { to } = values;
  const file = to === undefined ? findConfigFile(values.config) : undefined;
  const endpoint = await findEndpoint('--to', to, file, values);
  if (endpoint.callbackUrl !== undefined) return endpoint;
  throw new UsageError(missingUrl);
}

interface Parts {
  readonly stage: Stage;
  readonly books: Books | undefined;
  readonly values: Values;
  readonly service: RunningService;
  readonly progress: Progress;
}

interface Outcome {
  readonly rows: readonly Row[];
  /** Why nothing could be seen, if the endpoint acknowledges nothing. */
  readonly refusal?: Refusal;
  readonly isMended: boolean;
}

/** Plays every case. The one that breaks the app is the last, so that what follows from it disturbs no other. */
async function playAll(parts: Parts): Promise<Outcome> {
  const { stage, books, progress } = parts;
  const trials = listTrials(stage.service);
  const played: Played[] = [];
  await books?.requireEmpty(nobody());
  for (const trial of trials) {
    progress.begin(trial.name);
    stage.beginRow();
    const gap = stage.service.gaps[trial.name];
    const tried = gap === undefined ? await trial.play(stage) : judgeWire([], { unseen: gap });
    if (tried === undefined) continue;
    if (played.length > 0) {
      played.push({ trial, tried });
      continue;
    }
    const refusal = findRefusal(parts, tried);
    if (refusal !== undefined) {
      const first: Row = { ...unseenRow(trial), responses: tried.responses, because: [refusal.advice] };
      const others = [...trials.filter((each) => each !== trial), breaking];
      return { rows: [first, ...others.map((each) => unseenRow(each))], refusal, isMended: true };
    }
    played.push({ trial, tried, note: await awaitFirst(tried, books) });
  }
  const rows = await toRows(played, books);
  const { rows: last, isMended } = await playBroken(parts);
  return { rows: [...rows, ...last], isMended };
}

/** Returns why nothing can be seen after the first callback; `undefined` if it was acknowledged. */
function findRefusal({ stage, values, service }: Parts, { responses }: Tried): Refusal | undefined {
  const last = responses.at(-1);
  if (last === undefined || responses.some(isAcknowledgement)) return undefined;
  const { port, prepare } = values;
  const [keyRefusal, serviceUrl] = [service.findKeyRefusal(), service.url];
  const { isSigned } = stage.service;
  return explainRefusal(last, { port, prepare, keyRefusal, serviceUrl, isSigned });
}

/** Waits for the first booking. Resolves with a note if it was missing when it was acknowledged. */
async function awaitFirst({ toCount }: Tried, books: Books | undefined): Promise<string | undefined> {
  const [first] = toCount;
  if (first === undefined || books === undefined) return undefined;
  return (await books.awaitFirst(first.transfer)) ? undefined : bookedLater;
}

async function playBroken({ stage, books, values, progress }: Parts): Promise<Outcome> {
  if (values.break === undefined || values.mend === undefined) return { rows: [], isMended: true };
  progress.begin(breaking.name);
  stage.beginRow();
  const breakage = new Breakage({ break: values.break, mend: values.mend });
  const { tried, isMended } = await failOnce(stage, breakage, books);
  return { rows: await toRows([{ trial: breaking, tried }], isMended ? books : undefined), isMended };
}

/** A transfer that nobody has created: --count must not count it. */
function nobody(): NamedTransfer {
  return {
    externalId: `check-${crypto.randomUUID()}`,
    status: 'SUCCESS',
    id: crypto.randomUUID(),
    amount: 15_000,
    currency: 'XAF',
  };
}

const bookedLater =
  'Note: it was acknowledged before it was booked. Without a durable queue, what fails or crashes in between is lost.';

/** What no row shows: a table without it would be taken for a proof. */
function findUnseen(values: Values, books: Books | undefined, rows: readonly Row[]): string[] {
  return [
    ...(books === undefined ? ['how often a payout is booked (--count)'] : []),
    ...(books?.usesStatus === false ? ['whether a failed payout is booked as a failure ($STATUS in --count)'] : []),
    ...(values.break === undefined ? [withoutBreak] : []),
    ...(rows.every(({ trial }) => trial.name !== 'stranger') ? ['whether a stranger is believed (--stranger)'] : []),
    'what a crash does',
  ];
}

const withoutBreak =
  'what it does when it cannot book (--break, --mend): an id that is remembered first is acknowledged then, and lost';
