// Finds the tests that reach a file of the source, or a line of it, in the report of a run.
import { existsSync, readFileSync } from 'node:fs';
import { matchesGlob } from 'node:path';
import { parts } from './parts.mjs';

/** Parses `src/core/claim/line.ts` or `src/core/claim/line.ts:91`. */
export function parsePlace(given) {
  const [, file, line] = /^([^:]+\.ts)(?::(\d+))?$/.exec(given ?? '') ?? [];
  if (file === undefined || (line !== undefined && Number(line) < 1)) {
    throw new Error(`Expected a file, or a file and a line, such as src/core/claim/line.ts:91, got ${given}.`);
  }
  return { file, line: line === undefined ? undefined : Number(line) };
}

/** Returns the part that mutates a file. */
export function findPart(file) {
  const isIn = ({ mutate }) => {
    const excluded = mutate.filter((each) => each.startsWith('!')).map((each) => each.slice(1));
    const included = mutate.filter((each) => !each.startsWith('!'));
    return included.some((glob) => matchesGlob(file, glob)) && !excluded.some((glob) => matchesGlob(file, glob));
  };
  const found = Object.keys(parts).find((name) => isIn(parts[name]));
  if (found === undefined)
    throw new Error(`Expected a file of a part, got ${file}. No part of mutants/parts.mjs mutates it.`);
  return found;
}

/** Returns a report, or undefined if there is none. */
export function readReport(path) {
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined;
}

/**
 * Returns the tests that reach the place, as lines: those that a planted fault there has turned red come first, with `✗`.
 * Returns undefined if the report has no mutant there.
 */
export function findTests({ files, testFiles = {} }, { file, line }) {
  const isThere = ({ location: { start, end } }) => line === undefined || (start.line <= line && line <= end.line);
  const mutants = (files[file]?.mutants ?? []).filter(isThere);
  if (mutants.length === 0) return undefined;
  const tests = new Map(
    Object.entries(testFiles).flatMap(([path, each]) => each.tests.map(({ id, name }) => [id, `${path}: ${name}`])),
  );
  const red = new Set(mutants.flatMap(({ killedBy = [] }) => killedBy));
  const reaching = new Set(mutants.flatMap(({ coveredBy = [] }) => coveredBy));
  const toLines = (ids, sign) => ids.map((id) => `${sign} ${tests.get(id) ?? id}`).sort();
  return [
    ...toLines([...red], '✗'),
    ...toLines(
      [...reaching].filter((id) => !red.has(id)),
      ' ',
    ),
  ];
}
