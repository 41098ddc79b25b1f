import { expect, test } from 'vitest';

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
  expect(() => findPart('src/stores/mongo.ts')).toThrow('No part of mutants/parts.mjs mutates it.');
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
