// Checks ops/alerts.yml and plays the incidents of ops/*.test.yml against it.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const promtool = process.env.PROMTOOL_BIN ?? 'promtool';

function run(...args) {
  const { error, status } = spawnSync(promtool, args, {
    cwd: fileURLToPath(new URL('../ops', import.meta.url)),
    stdio: 'inherit',
  });
  if (error?.code === 'ENOENT') {
    console.error(
      'This needs promtool on the PATH or in PROMTOOL_BIN: it comes with Prometheus (`apt install prometheus`, `brew install prometheus`).',
    );
    process.exit(1);
  }
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
}

run('check', 'rules', 'alerts.yml');
run('test', 'rules', 'alerts.test.yml', 'alerts-days.test.yml');
