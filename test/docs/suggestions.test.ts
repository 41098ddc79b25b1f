// Raises each error that refuses an option or a result of `read`, in both packages, and runs the code that it suggests.
import { runInNewContext } from 'node:vm';
import ts from 'typescript';
import { afterAll, expect, test } from 'vitest';
import { transferCallbackReceiver } from 'transfer-callbacks';
import { defineService } from 'transfer-callbacks/client';
import { listNodes } from '../../scripts/entries.js';
import { listFiles } from './pages.js';
import { closeApp, id, makerOf, makers, makeScope, reversingOptions, states, takesOptions } from './suggestions/app.js';
import type { Make } from './suggestions/app.js';
import { mistakes, wrongOptions } from './suggestions/mistakes.js';

// An error comes from a function of ours through those of Vitest.
Error.stackTraceLimit = 60;
afterAll(closeApp);

/** The functions of src/lib/checks.ts that throw or make the error of an option. */
const makersOfErrors = new Set([
  ...['invalidArgument', 'invalidSecret', 'invalidVariable', 'requireFunction', 'requireBoolean'],
  ...['wholeNumber', 'onlyKnownOptions'],
]);

/** A call that refuses an option. */
interface Site {
  readonly path: string;
  /** Its first and its last line. */
  readonly lines: readonly [number, number];
  readonly code: string;
}

function findIn(path: string): Site[] {
  const isMaker = (node: ts.Node) => ts.isCallExpression(node) && makersOfErrors.has(node.expression.getText());
  const isWritten = (node: ts.Node) =>
    ts.isNewExpression(node) && node.expression.getText().endsWith('Error') && /\bWrite \\?`/.test(node.getText());
  const found = listNodes(path).filter((node) => isMaker(node) || isWritten(node));
  return found.map((node) => {
    const toLine = (position: number) => node.getSourceFile().getLineAndCharacterOfPosition(position).line + 1;
    const code = node.getText().replaceAll(/\s+/g, ' ');
    return { path, lines: [toLine(node.getStart()), toLine(node.getEnd())], code };
  });
}

const sites: readonly Site[] = ['src', 'sandbox/src']
  .flatMap((folder) => listFiles(folder, '.ts'))
  .filter((path) => path !== 'src/lib/checks.ts')
  .flatMap(findIn);

/** The beginning of each message about a result of `read`. */
const issueHeads = listNodes('src/client/service/read.ts')
  .flatMap((node) => (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) ? [node.text] : []))
  .filter((text) => /^(?:Expected|The schema|Reading|\. )/.test(text));

/** Returns the sites on the stack of an error. */
function findSites({ stack = '' }: Error): Site[] {
  const frames = [...stack.matchAll(/([\w./-]+\.ts):(\d+):\d+/g)];
  return sites.filter(({ path, lines: [first, last] }) =>
    frames.some(([, file = '', line]) => file.endsWith(`/${path}`) && Number(line) >= first && Number(line) <= last),
  );
}

/** A schema whose validation throws. */
const failing = { '~standard': { version: 1, vendor: 'a test', validate: () => expect.fail('It has no network.') } };

interface Refusal extends Error {
  readonly code: string;
  readonly option?: string;
  readonly write?: string;
}

const raised = new Set<Site>();

/** Returns the error of a mistake, and notes the places that it comes from. */
async function findRefusal(raise: () => unknown): Promise<Refusal> {
  const error = await Promise.resolve()
    .then(raise)
    .then(
      () => expect.fail('Nothing was refused.'),
      (thrown: unknown) => thrown as Refusal,
    );
  expect(error).toMatchObject({ code: 'INVALID_ARGUMENT' });
  const found = findSites(error);
  for (const site of found) raised.add(site);
  return error;
}

/** Returns the code that a message tells to write, if it does. */
function findCode({ message: text, write }: Refusal): string | undefined {
  const [, code] = / Write `([^`]+)`/.exec(text) ?? [];
  return write ?? code;
}

/** Makes it again, with what an error has suggested. Only another refusal of options fails. */
async function tryAgain(make: Make, options: object): Promise<void> {
  try {
    await make(options);
  } catch (error) {
    if ((error as Partial<Refusal>).code === 'INVALID_ARGUMENT') throw error;
  }
}

/** Runs the code that an error suggests: options for `make`, or an expression. */
async function follow(refusal: Refusal, make?: Make): Promise<void> {
  expectCareful(refusal);
  const code = findCode(refusal);
  if (code === undefined) return;
  const isOptions = /^[\w$]+: /.test(code);
  if (!isOptions) {
    const value: unknown = runInNewContext(code, makeScope());
    expect(value, code).toBeDefined();
    await tryAgain(() => value, {});
    return;
  }
  const options = runInNewContext(`({ ${code} })`, makeScope()) as Readonly<Record<string, unknown>>;
  await tryAgain(make ?? expect.fail(`Nothing takes the code ${code}`), options);
  await expectHarmless(options);
}

/** Options that may have any value. */
const unchecked = new Set(['cause', 'other', 'transaction', 'waitUntil']);

const sample = { event: 'payout.paid', data: { id: '7', reference: id, amount: 1, currency: 'XAF' } };

/** Fails for code that acknowledges and does nothing, trusts everyone, keeps nothing, or books `undefined`. */
async function expectHarmless({ store, verify, read: suggested, ...rest }: Readonly<Record<string, unknown>>) {
  for (const name of ['onSuccess', 'onFailed', 'onReversed', 'onOther']) {
    if (name in rest) await expect((rest[name] as Make)({ data: {} })).rejects.toThrow('Not written yet');
  }
  expect(store).not.toMatchObject({ processLocal: true });
  if (verify !== undefined) expect(await (verify as Make)({ url: '/', headers: {}, params: {} })).toBe(false);
  if (suggested !== undefined) expect((suggested as Make)(sample)).toMatchObject({ amount: 1, currency: 'XAF' });
}

/** Fails for advice that trusts more senders than before, keeps nothing, or ignores what was refused. */
function expectCareful(refusal: Refusal): void {
  expect(refusal.message).not.toMatch(/every sender is trusted|trust proxy'.*\/\d|ignored: /);
  expect(findCode(refusal) ?? '').not.toMatch(/memoryStore\(/);
}

test.each(makers)('%s accepts the code that the error of each of its options tells to write', async (_name, make) => {
  const unknown = await findRefusal(() => make({ unheardOf: 1 }));
  const known = / known are (.*)\.$/.exec(unknown.message)?.[1]?.split(', ') ?? [];
  expect(known.length).toBeGreaterThan(0);
  for (const option of known.filter((each) => !unchecked.has(each))) {
    await follow(await findRefusal(() => make({ [option]: Symbol('wrong') })), make);
  }
});

test.each(Object.entries(takesOptions))('the code to write in place of a number for %s works', async (name, [call]) => {
  await follow(await findRefusal(() => call(5 as never)), makerOf.get(name));
});

test.each(mistakes)('the code to write in place of %s works', async (_mistake, raise, maker = '') => {
  await follow(await findRefusal(raise), makerOf.get(maker));
});

test.each(wrongOptions)('the code to write in place of %s for %s works', async (_mistake, maker, options) => {
  const make = makerOf.get(maker) ?? expect.fail(`There is no ${maker}.`);
  await follow(await findRefusal(() => make(options)), make);
});

/** What `read` may return or throw, by the mistake in it. */
const readings: readonly [mistake: string, read: (payload: never) => unknown, more?: object, given?: unknown][] = [
  ['throws', ({ data }: { data: { id: string } }) => ({ state: data.id })],
  ['returns a promise', () => Promise.resolve({})],
  ['returns nothing', () => undefined],
  ['returns a state and a name', () => ({ state: 'paid', ignored: 'paid' })],
  ['returns no name', () => ({ ignored: '' })],
  ['ignores a state', () => ({ ignored: ' PAID' })],
  ['returns another state', () => ({ state: 'sent', id, externalId: id })],
  ['returns no id', () => ({ state: 'paid', externalId: id })],
  ['returns an id that cannot be printed', () => ({ state: 'paid', id: '\n', externalId: id })],
  ['returns a long id', () => ({ state: 'charged', id: 'a'.repeat(250) })],
  ['returns an inexact id', () => ({ state: 'paid', id: 2 ** 60, externalId: id })],
  ['returns no id of the app', () => ({ state: 'paid', id })],
  ['returns no amount', () => ({ state: 'paid', id, externalId: id, amount: undefined })],
  ['returns an amount without a digit', () => ({ state: 'paid', id, externalId: id, amount: '-' })],
  ['returns an endless amount', () => ({ state: 'paid', id, externalId: id, amount: Infinity })],
  ['returns an object for an amount', () => ({ state: 'paid', id, externalId: id, amount: {} })],
  ['returns a number for a currency', () => ({ state: 'paid', id, externalId: id, currency: 950 })],
  ['is behind a schema that throws', () => undefined, { payload: failing }],
  ['ignores a list', () => ({ ignored: 'a list' }), {}, [{ state: 'paid' }]],
];

test('no issue of a wrong `read` tells to ignore the callback, and each is raised here', async () => {
  const messages: string[] = [];
  for (const [mistake, wrong, more, given = { state: 'paid' }] of readings) {
    const own = defineService({ read: wrong as never, states, ...more });
    const outcome = await transferCallbackReceiver({ ...reversingOptions, service: own }).receive(given);
    const issues = 'issues' in outcome ? outcome.issues : [];
    expect(issues, mistake).not.toEqual([]);
    messages.push(...issues.map((issue) => issue.message));
    if ('error' in outcome && outcome.error instanceof Error) messages.push(outcome.error.message);
  }
  expect(messages.filter((text) => text.includes('{ ignored'))).toEqual([]);
  expect(issueHeads.length).toBeGreaterThan(10);
  expect(issueHeads.filter((head) => !messages.some((text) => text.includes(head)))).toEqual([]);
});

test('each place that refuses an option has refused one here', () => {
  // The console of the sandbox, whose page makes no mistake, and code that reads a variable of the environment.
  const isInside = ({ path, code }: Site): boolean =>
    code.includes('of the origin of the callback URL') ||
    /^sandbox\/src\/(?:service\/(?:clock|console-listener)|cli\/.*|services\/load-by-name)\.ts$/.test(path);
  expect(sites.length).toBeGreaterThan(150);
  const unraised = sites.filter((site) => !raised.has(site) && !isInside(site));
  expect(unraised.map(({ path, lines: [line], code }) => `${path}:${line} ${code}`)).toEqual([]);
});
