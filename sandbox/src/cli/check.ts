import { findReason, isAcknowledgement, type AttemptResponse } from '../attempt/attempt.js';
import { transferSandbox, type TransferSandbox } from '../index.js';
import { explainResponse } from '../service/hints.js';
import { allowPositionals, flag, parseArguments, text, toNumber, UsageError } from '../../../src/cli/arguments.js';
import { configFile, findConfigFile } from '../../../src/cli/config-file.js';
import { jsonLine, print, wrap } from '../../../src/cli/terminal.js';
import { Books } from './check-books.js';
import { Breakage } from './check-commands.js';
import { toJson, toLines, toRows, unseenRow, type Played, type Row } from './check-rows.js';
import { Stage } from './check-stage.js';
import { breaking, failOnce, trials } from './check-trials.js';
import { callbackHelp, callbackOptions, findEndpoint, requireUrl } from './endpoint-options.js';

export const help = `Usage: transfer-sandbox check [--to URL] [options]

Plays the cases of the service against a callback endpoint, whatever it is made
with. Prints what a right endpoint does, what this one did, and what the
difference costs: ✓ right, ✗ wrong, ◌ not seen, ! stricter than documented.
Exit code 0 if nothing is wrong, 1 if something is, 2 if the check could not be
run or --mend failed.

  --to URL                   The callback endpoint
  --config FILE              In place of --to, a module that exports callbackUrl
                             and callbackHeaders. Default:
                             ${configFile}, .js or .cjs
${callbackHelp}
  --port N                   Where the service answers queries, for an app that
                             asks it: http://127.0.0.1:N (default: any free
                             port), with SANDBOX_API_KEY and SANDBOX_API_SECRET
                             (default sandbox-key, sandbox-secret)
  --stranger URL             The endpoint as someone calls it who has no secret:
                             it must not believe that
  --strict                   What is stricter than documented counts, too
  --real-time                Wait between attempts as the service does, 30 s and
                             more (default: a hundredth of that)
  --settle SECONDS           How long a booking may take (default 10)
  --json                     Print one JSON object per line

What your app did cannot be seen from outside. These commands show it. Each gets
the externalId of a transfer as $ID, and its status as $STATUS:

  --count COMMAND            Prints how often it was booked, such as
                             'grep -c "$ID" ledger.txt'. Failed payouts are
                             counted only if it uses $STATUS
  --prepare COMMAND          Creates its payout, where your app must know it
  --break COMMAND            Keeps your app from booking, so that it must not
                             acknowledge: 'docker pause database'
  --mend COMMAND             Undoes that, also after Ctrl+C
`;

const options = {
  ...callbackOptions,
  to: text,
  port: text,
  stranger: text,
  settle: text,
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
  const { values, positionals } = parseArguments(args, options);
  allowPositionals(positionals, 0);
  const { to } = values;
  if ((values.break === undefined) !== (values.mend === undefined)) {
    throw new UsageError('Expected --break and --mend, or neither.');
  }
  if (values.stranger !== undefined) {
    requireUrl('--stranger', values.stranger, values['allow-other-hosts'] === true);
  }
  const settleMs = 1_000 * (toNumber('--settle', values.settle) ?? 10);
  if (settleMs < 0) throw new UsageError('Expected --settle to be a number of seconds from 0 on.');
  const endpoint = await findEndpoint('--to', to, to === undefined ? findConfigFile(values.config) : undefined, values);
  if (endpoint.callbackUrl === undefined) {
    throw new UsageError(`Expected --to URL, the callback endpoint, or a callbackUrl exported from ${configFile}.`);
  }
  const books = values.count === undefined ? undefined : new Books(values.count, settleMs);

  const sandbox = await startService(values);
  try {
    const stage = new Stage(sandbox, endpoint, {
      prepare: values.prepare,
      strangerUrl: values.stranger,
      isRealTime: values['real-time'] === true,
    });
    const { rows, missing, isMended } = await playAll(stage, books, values);
    report(rows, missing, values);
    if (missing !== undefined || !isMended) return 2;
    return rows.some((row) => row.verdict === 'wrong' && isCounted(row, values)) ? 1 : 0;
  } finally {
    await sandbox.close();
  }
}

/** Starts the service. It sends nothing by itself: its time stands still, and its transfers have no callback URL. */
function startService({ port }: Values): Promise<TransferSandbox> {
  return transferSandbox({
    port: toNumber('--port', port) ?? 0,
    apiKey: process.env.SANDBOX_API_KEY,
    apiSecret: process.env.SANDBOX_API_SECRET,
    clock: 'manual',
    finalAfterMs: 0,
    console: false,
  });
}

interface Outcome {
  readonly rows: readonly Row[];
  /** Which option is missing, if the endpoint refuses everything. */
  readonly missing?: string;
  readonly isMended: boolean;
}

/** Plays every case. The one that breaks the app is the last, so that what follows from it disturbs no other. */
async function playAll(stage: Stage, books: Books | undefined, values: Values): Promise<Outcome> {
  const played: Played[] = [];
  await books?.requireEmpty({ externalId: `check-${crypto.randomUUID()}`, status: 'SUCCESS' });
  for (const trial of trials) {
    let tried = await trial.play(stage);
    if (tried === undefined) continue;
    const last = tried.responses.at(-1);
    if (played.length === 0 && last !== undefined) {
      if (!tried.responses.some(isAcknowledgement)) {
        const all = [...trials, breaking].map((each) => unseenRow(each));
        return { rows: all, missing: explainRefusal(last, values), isMended: true };
      }
      const { transfer } = tried;
      const isInTime = transfer === undefined || books === undefined || (await books.awaitFirst(transfer));
      if (!isInTime) tried = { ...tried, note: bookedLater };
    }
    played.push({ trial, tried });
  }
  const rows = await toRows(played, books);
  if (values.break === undefined || values.mend === undefined) return { rows, isMended: true };
  const { isMended, ...tried } = await failOnce(stage, new Breakage({ break: values.break, mend: values.mend }));
  const last = await toRows([{ trial: breaking, tried }], isMended ? books : undefined);
  return { rows: [...rows, ...last], isMended };
}

const bookedLater =
  'Note: it was acknowledged before it was booked. Without a durable queue, what fails or crashes in between is lost.';

/** Returns which option is missing, or what else the first response means. */
function explainRefusal(response: AttemptResponse, { port, prepare }: Values): string {
  const start = 'The first callback was refused, so that nothing could be seen.';
  const status = 'status' in response ? response.status : undefined;
  if (status === 401 || status === 403) {
    return `${start} ${status} means that the sender was not believed: give the token in --to, --header, or a ${configFile} whose callbackHeaders(body) signs.`;
  }
  const missing = [
    ...(port === undefined ? ['if your app asks the service, give --port and let it ask there'] : []),
    ...(prepare === undefined ? ['if it must know its payout, give --prepare'] : []),
  ];
  const hint = explainResponse(response, findReason(response));
  if (status === undefined || missing.length === 0) return `${start} ${hint}`;
  return `${start} It got ${status}: ${missing.join('; ')}. ${hint}`;
}

function report(rows: readonly Row[], missing: string | undefined, values: Values): void {
  const { strict = false, json = false } = values;
  const summary = summarize(rows, values);
  if (json) {
    print(rows.map((row) => jsonLine(toJson(row))).join('') + jsonLine({ type: 'result', ...summary, missing }));
    return;
  }
  const isStricter = ({ trial }: Row): boolean => trial.group === 'stricter';
  const table = (some: readonly Row[]): string => some.map((row) => toLines(row, strict)).join('');
  print(table(rows.filter((row) => !isStricter(row))));
  print(`\nStricter than documented${strict ? '' : ' (counts with --strict)'}:\n${table(rows.filter(isStricter))}\n`);
  const { right, wrong, lessStrict, notSeen } = summary;
  print(`${right} right, ${wrong} wrong, ${notSeen} not seen${lessStrict > 0 ? `, ${lessStrict} less strict` : ''}.\n`);
  print(`${wrap(missing ?? `Not seen: ${summary.unseen.join('; ')}.`, 80).join('\n')}\n`);
}

const isCounted = ({ trial }: Row, { strict = false }: Values): boolean => strict || trial.group === 'documented';

/** What no row shows: a table without it would be taken for a proof. */
function summarize(rows: readonly Row[], values: Values) {
  const wrong = rows.filter(({ verdict }) => verdict === 'wrong');
  const unseen = rows.filter(({ verdict }) => verdict === 'not seen').map(({ trial }) => trial.name);
  return {
    right: rows.filter(({ verdict }) => verdict === 'right').length,
    wrong: wrong.filter((row) => isCounted(row, values)).length,
    lessStrict: wrong.filter((row) => !isCounted(row, values)).length,
    notSeen: unseen.length,
    unseen: [
      ...unseen,
      ...(values.count === undefined ? ['how often a payout is booked (--count)'] : []),
      ...(values.break === undefined ? [withoutBreak] : []),
      ...(values.stranger === undefined ? ['whether a stranger is believed (--stranger)'] : []),
      'what a crash does',
    ],
  };
}

const withoutBreak =
  'what it does when it cannot book (--break, --mend): an id that is remembered first is acknowledged then, and lost';
