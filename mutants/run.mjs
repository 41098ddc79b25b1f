// Plants faults in the source, part by part, and reports how many of them the tests catch.
import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parts, reportOf } from './parts.mjs';
import { findPart, findTests, parsePlace, readReport } from './who.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const names = Object.keys(parts);
const kinds = { Killed: 'killed', Timeout: 'timedOut', Survived: 'survived', NoCoverage: 'survived' };
const asked = process.argv.slice(2);
if (asked[0] === '--who') {
  printTests(parsePlace(asked[1]));
  process.exit();
}
const unknown = asked.find((name) => !names.includes(name));
if (unknown !== undefined) throw new Error(`Expected a part, one of ${names.join(', ')}, got ${unknown}.`);

for (const part of asked.length === 0 ? names : asked) {
  const status = runStryker(part);
  const report = readReport(root + reportOf(part));
  if (report !== undefined) writeScore(part, report);
  if (status !== 0) {
    console.error(
      `${part}: expected at least ${parts[part].least} %. Kill the survivors above: a test that states a promise, or less code.`,
    );
    process.exit(status ?? 1);
  }
}

/** Runs the mutants of a part, or only the tests of a file, to see what they reach. Returns the exit code. */
function runStryker(part, { file, folder } = {}) {
  const stryker = `${root}mutants/node_modules/@stryker-mutator/core/bin/stryker.js`;
  const env = { ...process.env, MUTANTS_PART: part, ...(folder && { MUTANTS_REACH: folder }) };
  const args = [stryker, 'run', 'mutants/stryker.config.mjs', ...(file ? ['--mutate', file] : [])];
  return spawnSync(process.execPath, args, { cwd: root, env, stdio: 'inherit' }).status;
}

/** Prints the tests that reach a place, by the last report of its part, or by a run of its tests without mutants. */
function printTests({ file, line }) {
  const part = findPart(file);
  let report = readReport(root + reportOf(part));
  if (report?.files[file] === undefined) {
    mkdirSync(`${root}.test`, { recursive: true });
    const folder = mkdtempSync(`${root}.test/reach-`);
    runStryker(part, { file, folder });
    report = readReport(`${folder}/reach.json`);
    rmSync(folder, { recursive: true, force: true });
  }
  const tests = findTests(report ?? { files: {} }, { file, line });
  console.log(tests?.join('\n') ?? 'No mutant is there: the place has no code that a test could miss.');
}

/** Prints the score of a part, and writes it into the summary of a workflow's run. */
function writeScore(part, results) {
  const { killed, timedOut, survived } = countMutants(results);
  const score = ((100 * (killed + timedOut)) / (killed + timedOut + survived)).toFixed(1);
  const line = `${part}: ${score} %. ${killed} killed, ${timedOut} timed out, ${survived} survived`;
  console.log(line);
  if (process.env.GITHUB_STEP_SUMMARY) appendFileSync(process.env.GITHUB_STEP_SUMMARY, `${line}\n`);
}

function countMutants({ files }) {
  const counts = { killed: 0, timedOut: 0, survived: 0 };
  for (const { status } of Object.values(files).flatMap(({ mutants }) => mutants)) {
    if (status in kinds) counts[kinds[status]] += 1;
  }
  return counts;
}
