// The tables of the documents, compared with the code.
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { transferScenarios } from 'transfer-sandbox';
import { receiverOptionNames } from '../../src/core/resolve-options.js';
import { receiverDefaults } from '../../src/core/times.js';
import { logFields } from '../../src/core/report.js';
import { defaultBodyLimitBytes } from '../../src/http/options.js';
import { exportsOf, listEntries, readCompilerOptions } from '../../scripts/entries.js';
import { verifiers } from '../http/support.js';
import { findNames, findPage, findTable, isThere, listFiles, readText, toNumber } from './pages.js';

const handlers = findPage('docs/handlers.md');
const reconciliation = findPage('docs/reconciliation.md');
const services = findPage('docs/services.md');

const entries = listEntries();
const program = ts.createProgram(
  entries.map(({ source }) => source),
  readCompilerOptions(),
);
const checker = program.getTypeChecker();

/** Returns the type that a file of `src` exports. */
function findType(path: string, name: string): ts.Type {
  const source = fileURLToPath(new URL(`../../src/${path}.ts`, import.meta.url));
  const symbol = exportsOf(program, source).get(name) ?? expect.fail(`${path} does not export ${name}.`);
  return checker.getDeclaredTypeOfSymbol(symbol);
}

/** Returns the texts that a union of texts consists of. */
function findTexts(path: string, name: string): string[] {
  const type = findType(path, name);
  return (type.isUnion() ? type.types : [type]).flatMap((each) => (each.isStringLiteral() ? [each.value] : []));
}

/** Returns the properties of a type, each with the `@default` of its doc comment, as the documents write it. */
function findProperties(path: string, name: string): Map<string, string | undefined> {
  const properties = checker.getPropertiesOfType(findType(path, name)).map((symbol): [string, string | undefined] => {
    const tag = symbol.getJsDocTags().find((each) => each.name === 'default');
    const stated = tag && ts.displayPartsToString(tag.text);
    return [symbol.name, stated?.replaceAll("'", '').replaceAll(/(?<=\d)_/g, ' ')];
  });
  return new Map(properties);
}

const firstNames = (rows: string[][]): string[] => rows.flatMap(([name]) => findNames(name));

const toCells = (line: string): string[] => line.split('|').map((cell) => cell.trim().replaceAll('**', ''));

test('the README shows what the code written by hand lost in the measurement', () => {
  const heads = (text: string): string[] => toCells(/^\|.*late failure.*$/m.exec(text)?.[0] ?? '');
  const { text } = findPage('README.md');
  const results = readText('bench/results/README.md');
  const measured = new Map(
    results.split('\n').map((line) => {
      const cells = toCells(line);
      return [cells[1], cells];
    }),
  );
  const shown = text.split('\n').filter((line) => /^\| (this package|by hand)/.test(line));
  expect(shown.length).toBeGreaterThan(3);
  for (const line of shown) {
    const cells = toCells(line);
    const row = measured.get(cells[1]) ?? expect.fail(`${String(cells[1])} was not measured.`);
    for (const [index, situation] of heads(text).entries()) {
      if (situation !== '') expect(cells[index], situation).toBe(row[heads(results).indexOf(situation)]);
    }
  }
});

test('docs/stores.md has a line of code for each store', () => {
  const lines = findTable(findPage('docs/stores.md'), 'your library').map(([, code = '']) => code);
  const factories = lines.map((code) => /`(\w+)\(/.exec(code)?.[1]);
  const stores = [...exportsOf(program, entries[0]?.source ?? '').keys()].filter((name) =>
    /^[a-z]\w+Store$/.test(name),
  );
  expect(factories.sort()).toEqual(stores.sort());
});

test('docs/security.md has a row for each verifier', () => {
  const rows = findTable(findPage('docs/security.md'), 'verifier').map(([code = '']) => /`(\w+)\(/.exec(code)?.[1]);
  expect(rows.sort()).toEqual(Object.keys(verifiers).sort());
});

test('docs/handlers.md lists each option of the receiver and of HTTP, with its default', () => {
  const rows = findTable(handlers, 'option');
  expect(firstNames(rows).sort()).toEqual([...receiverOptionNames, 'verify', 'bodyLimitBytes'].sort());
  const defaults = rows
    .filter(([, value]) => !Number.isNaN(toNumber(value)))
    .map(([name, value]) => [findNames(name)[0], toNumber(value)]);
  expect(Object.fromEntries(defaults)).toEqual({ ...receiverDefaults, bodyLimitBytes: defaultBodyLimitBytes });
});

test.each([
  ['docs/handlers.md', 'field', 'core/options', 'HandlerContext'],
  ['docs/stores.md', 'option', 'stores/sql/options', 'SqlStoreOptions'],
  ['docs/reconciliation.md', 'option of `confirm`', 'core/payout-service', 'ConfirmLimits'],
  ['docs/reconciliation.md', 'option of `reconcileTransfers`', 'client/reconcile/reconcile', 'ReconcileOptions'],
  ['sandbox/README.md', 'option of `deliver`', '../sandbox/src/deliver/deliver', 'DeliverOptions'],
  ['sandbox/README.md', 'option of `transferSandbox`', '../sandbox/src/service/options', 'TransferSandboxOptions'],
])('%s lists each %s of %s, %s, with its default', (path, first, source, name) => {
  const rows = findTable(findPage(path), first);
  const properties = findProperties(source, name);
  expect(firstNames(rows).sort()).toEqual([...properties.keys()].sort());
  const documented = rows.flatMap(([names, value = '']) => {
    const values = value.split(', ');
    return findNames(names).map((each, index): [string, string] => [each, values[index] ?? value]);
  });
  for (const [each, value] of documented) {
    const isExact = !Number.isNaN(toNumber(value)) || /^`[^`]+`$/.test(value);
    if (isExact) expect(value.replaceAll('`', ''), each).toBe(properties.get(each));
  }
});

test('every export has a doc comment', () => {
  const undocumented = entries.flatMap(({ name: entry, source }) =>
    [...exportsOf(program, source)]
      .filter(([, symbol]) => symbol.getDocumentationComment(checker).length === 0)
      .map(([name]) => `${entry}: ${name}`),
  );
  expect(undocumented).toEqual([]);
});

test('every option that may be left out has a default in its doc comment', () => {
  const interfaces = program
    .getSourceFiles()
    .filter(({ fileName }) => /\/src\/(?!attempt\/|.*\/src\/)/.test(fileName) && !fileName.includes('node_modules'))
    .flatMap(({ statements }) => statements.filter(ts.isInterfaceDeclaration))
    .filter(({ name }) => name.text.endsWith('Options'));
  expect(interfaces.length).toBeGreaterThan(10);
  const silent = interfaces.flatMap(({ name, members }) =>
    members
      .filter((member) => member.questionToken !== undefined && !member.getFullText().includes('@default'))
      .map((member) => `${name.text}: ${String(member.name?.getText())}`),
  );
  expect(silent).toEqual([]);
});

test('docs/errors.md has one section for each code, which tells what to do', () => {
  const [, ...sections] = findPage('docs/errors.md').text.split(/^### /m);
  const codes = [
    ...findTexts('lib/errors', 'TransferCallbackErrorCode'),
    ...findTexts('client/errors', 'TransferClientErrorCode'),
    ...['PENDING_FAILED', 'PAID_FAILED', 'ON_PROGRESS_FAILED'],
  ];
  expect(sections.map((section) => section.split('\n')[0]).sort()).toEqual([...new Set(codes)].sort());
  const whole = sections.filter((section) => /^- \*\*Do:\*\*/m.test(section));
  expect(sections.filter((section) => !whole.includes(section)).map((section) => section.split('\n')[0])).toEqual([
    'INVALID_ARGUMENT',
  ]);
});

test('docs/reconciliation.md lists each result of a transfer, and each reason to stop', () => {
  const result = checker.getPropertyOfType(findType('client/reconcile/report', 'Reconciled'), 'result');
  const type = result === undefined ? undefined : checker.getTypeOfSymbol(result);
  const results = type?.isUnion() ? type.types.map((each) => (each.isStringLiteral() ? each.value : '')) : [];
  expect(firstNames(findTable(reconciliation, 'result')).sort()).toEqual(results.sort());
  const reasons = findTexts('client/reconcile/report', 'Stopped');
  expect(firstNames(findTable(reconciliation, 'stopped')).sort()).toEqual(reasons.sort());
});

test('sandbox/README.md lists each scenario as the code describes it', () => {
  const documented = findTable(findPage('sandbox/README.md'), 'scenario').map(([name, description]) => ({
    name: (name ?? '').replaceAll('`', ''),
    description,
  }));
  expect(documented).toEqual(transferScenarios);
});

test('docs/logs-and-metrics.md lists the fields of a log line in their order', () => {
  const rows = findTable(findPage('docs/logs-and-metrics.md'), 'field of a line');
  expect(rows.flatMap(([names]) => findNames(names))).toEqual([...logFields, 'err']);
});

test('docs/operations.md and docs/reconciliation.md list each verdict', () => {
  const verdicts = findTexts('client/inspect/verdict', 'TransferVerdict').sort();
  expect(firstNames(findTable(findPage('docs/operations.md'), 'verdict')).sort()).toEqual(verdicts);
  const shown = findTable(reconciliation, 'service').map(([, , verdict]) => findNames(verdict)[0]);
  expect([...new Set(shown)].sort()).toEqual(verdicts);
});

test('docs/services.md has a row and samples for each definition, and a source for each service', () => {
  const definitions = listFiles('examples/services', '.ts').map((path) => path.slice('examples/services/'.length, -3));
  const linked = findTable(services, 'service, definition').map(([cell = '']) => /services\/(\w+)\.ts/.exec(cell)?.[1]);
  expect(linked.sort()).toEqual(definitions.sort());
  expect(definitions.filter((name) => !isThere(`examples/services/payloads/${name}.json`))).toEqual([]);
});

test('the samples have their sources and the day of docs/services.md, as the comments of the definitions', () => {
  const [, day] = /were read in public documentation on ([\d-]+)\. No service was seen live/.exec(services.text) ?? [];
  const definitions = listFiles('examples/services', '.ts');
  expect(definitions.length).toBeGreaterThan(10);
  for (const path of definitions) {
    const samples = path.replace(/(\w+)\.ts$/, 'payloads/$1.json');
    const { source, readOn } = JSON.parse(readText(samples)) as { source: string; readOn: string };
    expect(readOn, samples).toBe(day);
    const comment = readText(path).replaceAll(/\s*\n\/\/ /g, ' ');
    expect(comment, path).toContain(`Read in public documentation on ${String(day)}, not seen live`);
    const [place = ''] = /^[\w.]+/.exec(source) ?? [];
    expect(comment, path).toContain(place);
  }
});
