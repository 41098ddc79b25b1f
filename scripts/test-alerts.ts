// Checks ops/alerts.yml and plays the incidents of ops/*.test.yml against it.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { findOnPath, findUnpacked } from '../test/support/servers/programs.js';

/** promtool needs none of the libraries that its package asks for. */
const debianPromtool = {
  name: 'promtool',
  path: 'usr/bin/promtool',
  download: ['download', 'prometheus'],
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

function run(promtool: string, ...args: string[]): void {
  const { error, status } = spawnSync(promtool, args, {
    cwd: fileURLToPath(new URL('../ops', import.meta.url)),
    stdio: 'inherit',
  });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
}

try {
  const promtool = await findPromtool();
  run(promtool, 'check', 'rules', 'alerts.yml');
  run(promtool, 'test', 'rules', 'alerts.test.yml', 'alerts-days.test.yml');
} catch (error) {
  console.error((error as Error).message);
  process.exit(1);
}
