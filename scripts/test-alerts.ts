// Checks ops/alerts.yml and plays the incidents of ops/*.test.yml against it: as they are, and those of alerts.test.yml
// also with ten events of `onOther` and ten ignored ones for each transfer, which must neither hide an incident nor
// fire an alert.
import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findOnPath, findUnpacked } from '../test/support/servers/programs.js';

/** promtool needs none of the libraries that its package asks for. */
const debianPromtool = {
  name: 'promtool',
  path: 'usr/bin/promtool',
  package: 'prometheus',
  isAlone: true,
  megabytes: 19,
};

const howToGetOne =
  'This needs promtool on the PATH or in PROMTOOL_BIN. It comes with Prometheus: ' +
  '`apt install prometheus` on Debian, `brew install prometheus` on macOS, `apk add prometheus` on Alpine.';

async function findPromtool(): Promise<string> {
  const { PROMTOOL_BIN } = process.env;
  if (PROMTOOL_BIN) return PROMTOOL_BIN;
  const promtool = (await findOnPath('promtool')) ?? (await findUnpacked(debianPromtool));
  if (promtool === undefined) throw new Error(howToGetOne);
  return promtool;
}

const ops = fileURLToPath(new URL('../ops', import.meta.url));

/** Returns whether promtool has found no fault. */
function run(promtool: string, ...args: string[]): boolean {
  const { error, status } = spawnSync(promtool, args, { cwd: ops, stdio: 'inherit' });
  if (error) throw error;
  return status === 0;
}

/** Ten more events at each sample, from the first to the last sample that the given values have. */
function tenAtEachSample(values: string): string {
  let samples = 0;
  const steps = values.split(' ').map((step) => {
    // `_x40` and `stale` are no samples: the process has not started, or is gone.
    if (!/^\d/.test(step)) return step;
    const [, more = '0'] = step.split('x');
    const first = samples * 10;
    samples += Number(more) + 1;
    return `${first}+10x${more}`;
  });
  return steps.join(' ');
}

/** Adds a series of `onOther`, and one of what is ignored, to every test that has one of transfers. */
function addOtherEvents(tests: string): string {
  const transfers =
    /( +- series: transfer_callbacks_deliveries_total\{)event="transfer",[^}]*source="http"[^}]*\}\n( +values: )(.*)\n/;
  const [head = '', ...each] = tests.split(/^(?= {2}- name: )/m);
  const changed = each.map((test) => {
    if (!transfers.test(test) && test.includes('event="transfer"')) {
      throw new Error(`Expected a series of transfers over HTTP in two lines, as in other tests, got ${test}`);
    }
    return test.replace(transfers, (found, series: string, key: string, values: string) => {
      const more = ['event="other",outcome="processed"', 'event="none",outcome="ignored"'].map((labels) => {
        const instance = 'source="http",job="payouts",instance="of-other-events"}';
        return `${series}${labels},${instance}\n${key}${tenAtEachSample(values)}\n`;
      });
      return found + more.join('');
    });
  });
  return [head.replace('[alerts.yml]', `[${join(ops, 'alerts.yml')}]`), ...changed].join('');
}

async function runWithOtherEvents(promtool: string): Promise<boolean> {
  const folder = await mkdtemp(join(tmpdir(), 'transfer-callbacks-alerts-'));
  try {
    const path = join(folder, 'alerts-with-other-events.test.yml');
    await writeFile(path, addOtherEvents(await readFile(join(ops, 'alerts.test.yml'), 'utf8')));
    return run(promtool, 'test', 'rules', path);
  } finally {
    await rm(folder, { recursive: true });
  }
}

try {
  const promtool = await findPromtool();
  const passed =
    run(promtool, 'check', 'rules', 'alerts.yml') &&
    run(promtool, 'test', 'rules', 'alerts.test.yml', 'alerts-days.test.yml') &&
    (await runWithOtherEvents(promtool));
  process.exit(passed ? 0 : 1);
} catch (error) {
  console.error((error as Error).message);
  process.exit(1);
}
