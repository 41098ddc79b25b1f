// Plants faults in the source, part by part, and reports how many of them the tests catch.
import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parts, reportOf } from './parts.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const names = Object.keys(parts);
const kinds = { Killed: 'killed', Timeout: 'timedOut', Survived: 'survived', NoCoverage: 'survived' };
const asked = process.argv.slice(2);
const unknown = asked.find((name) => !names.includes(name));
if (unknown !== undefined) throw new Error(`Expected a part, one of ${names.join(', ')}, got ${unknown}.`);

for (const part of asked.length === 0 ? names : asked) {
  const stryker = `${root}mutants/node_modules/@stryker-mutator/core/bin/stryker.js`;
  const env = { ...process.env, MUTANTS_PART: part };
  const { status } = spawnSync(process.execPath, [stryker, 'run', 'mutants/stryker.config.mjs'], {
    cwd: root,
    env,
    stdio: 'inherit',
  });
  const report = root + reportOf(part);
  if (existsSync(report)) writeScore(part, JSON.parse(readFileSync(report)));
  if (status !== 0) {
    console.error(
      `${part}: expected at least ${parts[part].least} %. Kill the survivors above: a test that states a promise, or less code.`,
    );
    process.exit(status ?? 1);
  }
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
