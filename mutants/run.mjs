// Plants faults in the source, part by part, and writes into docs/guarantees.md how many of them the tests catch.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import { parts, reportOf } from './parts.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const page = `${root}docs/guarantees.md`;
const names = Object.keys(parts);
const kinds = { Killed: 'killed', Timeout: 'timedOut', Survived: 'survived', NoCoverage: 'survived' };
const asked = process.argv.slice(2);
const unknown = asked.find((name) => !names.includes(name));
if (unknown !== undefined) throw new Error(`Expected a part, one of ${names.join(', ')}, got ${unknown}.`);

for (const part of asked.length === 0 ? names : asked) {
  const kept = `${root}mutants/results/${part}.json.gz`;
  const report = root + reportOf(part);
  mkdirSync(`${root}.test`, { recursive: true });
  if (existsSync(kept)) writeFileSync(report, gunzipSync(readFileSync(kept)));
  const stryker = `${root}mutants/node_modules/@stryker-mutator/core/bin/stryker.js`;
  const env = { ...process.env, MUTANTS_PART: part };
  const { status } = spawnSync(process.execPath, [stryker, 'run', 'mutants/stryker.config.mjs'], {
    cwd: root,
    env,
    stdio: 'inherit',
  });
  const results = readFileSync(report);
  writeFileSync(kept, gzipSync(results, { level: 9 }));
  writeLine(part, JSON.parse(results));
  if (status !== 0) process.exit(status ?? 1);
}

/** Replaces the line of the part in the page's table, or adds it at the end. */
function writeLine(part, results) {
  const { killed, timedOut, equal, survived } = countMutants(results);
  const caught = killed + timedOut;
  const score = ((100 * caught) / (caught + survived)).toFixed(1);
  const today = new Date().toISOString().slice(0, 10);
  const mutants = caught + survived + equal;
  const line = `| \`${part}\` | ${mutants} | ${killed} | ${timedOut} | ${equal} | ${survived} | ${score} % | ${today} |`;
  const text = readFileSync(page, 'utf8');
  const old = new RegExp(`^\\| \`${part}\` \\|.*\\| \\d{4}-\\d{2}-\\d{2} \\|$`, 'm');
  const heading = /^(\| part \| mutants .*\n\|.*\n(?:\|.*\n)*)/m;
  writeFileSync(page, old.test(text) ? text.replace(old, line) : text.replace(heading, `$1${line}\n`));
}

/** Counts the mutants. `equal` are those that a comment in the source names so. */
function countMutants({ files }) {
  const counts = { killed: 0, timedOut: 0, equal: 0, survived: 0 };
  for (const { status, statusReason } of Object.values(files).flatMap(({ mutants }) => mutants)) {
    if (status in kinds) counts[kinds[status]] += 1;
    else if (statusReason?.startsWith('Equal: ')) counts.equal += 1;
  }
  return counts;
}
