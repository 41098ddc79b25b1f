// A Prometheus of its own for a run, and what it knows afterwards.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

/** One series of a query: its labels, and its values with their times in seconds since 1970. */
export interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly values: readonly (readonly [number, string])[];
}

export interface Prometheus {
  /** Resolves with the series of a query between two times in seconds since 1970. */
  queryRange(query: string, start: number, end: number, step: number): Promise<readonly Series[]>;
  /** Resolves with the only value of a query, or with `undefined`. */
  queryValue(query: string, time: number): Promise<number | undefined>;
  stop(): Promise<void>;
}

/** Starts a Prometheus that scrapes `target`, such as `127.0.0.1:3000`, every 2 s. */
export async function startPrometheus(target: string): Promise<Prometheus> {
  const folder = await mkdtemp(join(tmpdir(), 'transfer-callbacks-prometheus-'));
  const config = {
    global: { scrape_interval: '2s' },
    scrape_configs: [{ job_name: 'payouts', static_configs: [{ targets: [target] }] }],
  };
  // JSON is YAML.
  await writeFile(join(folder, 'prometheus.yml'), JSON.stringify(config));
  const address = `127.0.0.1:${await findFreePort()}`;
  const child = spawn(
    process.env.PROMETHEUS_BIN ?? 'prometheus',
    [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${address}`,
    ],
    { stdio: 'ignore' },
  );
  const exited = once(child, 'exit');
  await once(child, 'spawn');
  await waitUntilReady(`http://${address}/-/ready`);
  const query = async (path: string, parameters: Record<string, string>): Promise<readonly Series[]> => {
    const response = await fetch(`http://${address}/api/v1/${path}?${new URLSearchParams(parameters).toString()}`);
    const { data, error } = (await response.json()) as { data?: { result: readonly Series[] }; error?: string };
    if (data === undefined) throw new Error(`Prometheus refused ${String(parameters.query)}: ${String(error)}`);
    return data.result;
  };
  return {
    queryRange: (text, start, end, step) =>
      query('query_range', { query: text, start: String(start), end: String(end), step: String(step) }),
    async queryValue(text, time) {
      const [series] = await query('query', { query: text, time: String(time) });
      const value = Number((series as unknown as { value?: [number, string] } | undefined)?.value?.[1] ?? NaN);
      return Number.isNaN(value) ? undefined : value;
    },
    async stop() {
      child.kill();
      await exited;
      await rm(folder, { recursive: true });
    },
  };
}

async function waitUntilReady(url: string): Promise<void> {
  for (let attempt = 0; attempt < 300; attempt += 1) {
    const isReady = await fetch(url).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isReady) return;
    await pause(100);
  }
  throw new Error('Prometheus was not ready within 30 s.');
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}
