// `npm run dashboard-picture` draws docs/images/dashboard-*.svg: it runs the sandbox through every scenario for some
// minutes, has a Prometheus scrape the app, and asks it the dashboard's own queries. Needs `prometheus` on the PATH or in
// PROMETHEUS_BIN.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { drawDashboard } from './dashboard/draw.js';
import type { Filled, Panel, Span } from './dashboard/panel.js';
import { startPrometheus, type Prometheus } from './dashboard/prometheus.js';
import { startWorld } from './dashboard/run.js';
import { themes } from './dashboard/theme.js';

const minutes = Number(process.env.MINUTES ?? 8);
const root = fileURLToPath(new URL('..', import.meta.url));

async function fill(panel: Panel, span: Span, prometheus: Prometheus): Promise<Filled> {
  const toQuery = (expr: string): string => expr.replaceAll('$job', '.*').replaceAll('$__rate_interval', '20s');
  if (panel.type === 'stat') {
    const value = await prometheus.queryValue(toQuery(panel.targets[0]?.expr ?? ''), span.end);
    return { panel, value, lines: [] };
  }
  const lines = await Promise.all(
    panel.targets.map(async ({ expr, legendFormat }) => {
      const found = await prometheus.queryRange(toQuery(expr), span.start, span.end, span.step);
      return found.map((series) => ({
        name: legendFormat.replace(/\{\{(\w+)\}\}/, (_, label: string) => series.metric[label] ?? ''),
        series,
      }));
    }),
  );
  return { panel, lines: lines.flat() };
}

const { panels } = JSON.parse(await readFile(`${root}/ops/dashboard.json`, 'utf8')) as { panels: Panel[] };
const world = await startWorld();
const prometheus = await startPrometheus(world.address);
const filled: Filled[] = [];
let span: Span;
try {
  // Without the first scrape there is nothing from which anything could increase.
  await pause(5_000);
  const start = Math.floor(Date.now() / 1_000);
  await world.play(minutes * 60_000);
  await pause(3_000);
  span = { start, end: start + minutes * 60, step: 4 };
  for (const panel of panels) filled.push(await fill(panel, span, prometheus));
} finally {
  await prometheus.stop();
  await world.stop();
}
await mkdir(`${root}/docs/images`, { recursive: true });
for (const [name, theme] of Object.entries(themes)) {
  await writeFile(`${root}/docs/images/dashboard-${name}.svg`, drawDashboard(filled, span, theme));
}
