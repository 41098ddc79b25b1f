import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { root } from './docs/pages.js';
import { removeTemporary } from './support/programs/child.js';
import { makeFolder } from './support/servers/server.js';

interface Place {
  readonly file: string;
  readonly line?: number | undefined;
}

const { findPart, findTests, parsePlace } = (await import(new URL('../mutants/who.mjs', import.meta.url).href)) as {
  readonly findPart: (file: string) => string;
  readonly findTests: (report: object, place: Place) => readonly string[] | undefined;
  readonly parsePlace: (given: string | undefined) => Place;
};

const file = 'src/core/claim/line.ts';

test('a place is a file, or a line of it, and any other one is refused', () => {
  expect(parsePlace(file)).toEqual({ file, line: undefined });
  expect(parsePlace(`${file}:91`)).toEqual({ file, line: 91 });
  for (const given of [undefined, '', 'src/core/claim', `${file}:`, `${file}:0`, `${file}:x`]) {
    expect(() => parsePlace(given)).toThrow('Expected a file, or a file and a line, such as src/core/claim/line.ts:91');
  }
});

test('the part of a file is the one that mutates it', () => {
  const files = [file, 'src/lib/slots.ts', 'src/stores/sql/pg.ts', 'src/stores/sql/libraries.ts'];
  expect(files.map(findPart)).toEqual(['core', 'client', 'sql', 'libraries']);
  expect(() => findPart('src/cli/program.ts')).toThrow('No part of mutants/parts.mjs mutates it.');
});

test('the tests that reach a line are listed, those that a mutant has turned red first', () => {
  const toMutant = (start: number, end: number, coveredBy?: string[], killedBy?: string[]) => ({
    location: { start: { line: start }, end: { line: end } },
    ...(coveredBy && { coveredBy }),
    ...(killedBy && { killedBy }),
  });
  const mutants = [toMutant(1, 9, ['a', 'b'], ['b']), toMutant(5, 5, ['c'], ['c']), toMutant(7, 7)];
  const tests = ['a', 'b', 'c'].map((id) => ({ id, name: `test ${id}` }));
  const report = { files: { [file]: { mutants } }, testFiles: { 'test/core/claim/lines.test.ts': { tests } } };
  const [a, b, c] = tests.map(({ name }) => `test/core/claim/lines.test.ts: ${name}`);
  expect(findTests(report, { file, line: 5 })).toEqual([`✗ ${b}`, `✗ ${c}`, `  ${a}`]);
  expect(findTests(report, { file, line: 7 })).toEqual([`✗ ${b}`, `  ${a}`]);
  expect(findTests(report, { file })).toHaveLength(3);
  expect(findTests(report, { file, line: 10 })).toBeUndefined();
  expect(findTests({ files: {} }, { file })).toBeUndefined();
});

/** Does what Stryker does with its folders, and writes what the reporter of mutants/reach.mjs would. */
const stryker = `const { mkdirSync, writeFileSync } = require('node:fs');
import(process.cwd() + '/mutants/stryker.config.mjs').then(({ default: { tempDirName } }) => {
  mkdirSync(tempDirName + '/sandbox-b', { recursive: true });
  const location = { start: { line: 1 }, end: { line: 9 } };
  const files = { '${file}': { mutants: [{ location, coveredBy: ['a'] }] } };
  const report = { files, testFiles: { 'a.test.ts': { tests: [{ id: 'a', name: 'test a' }] } } };
  writeFileSync(process.env.MUTANTS_REACH + '/reach.json', JSON.stringify(report));
});
`;

test('`--who` prints the tests of a file without a report, and leaves nothing, and the files of a run beside it', async () => {
  const folder = await makeFolder();
  onTestFinished(() => removeTemporary(folder));
  cpSync(join(root, 'mutants'), join(folder, 'mutants'), {
    recursive: true,
    filter: (path) => !path.includes('node_modules'),
  });
  const bin = join(folder, 'mutants/node_modules/@stryker-mutator/core/bin');
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, 'stryker.js'), stryker);
  mkdirSync(join(folder, '.test/mutants/sandbox-a'), { recursive: true });
  const args = [join(folder, 'mutants/run.mjs'), '--who', `${file}:5`];
  expect(execFileSync(process.execPath, args, { encoding: 'utf8' })).toBe('  a.test.ts: test a\n');
  expect(readdirSync(join(folder, '.test'), { recursive: true })).toEqual(['mutants', 'mutants/sandbox-a']);
});
