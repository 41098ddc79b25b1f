// The page of the results, in Markdown.
import { markOf } from '../guarantees.mjs';
import { ownShares } from '../in-process.mjs';
import { toTable } from '../profile.mjs';
import { scaleParts } from '../scale.mjs';
import { columns } from '../variants.mjs';
import { toMarkdown } from './tables.mjs';

/** Writes the page from what the parts have measured; parts that are missing are left out. */
export function writePage(data) {
  const sections = [
    '# Results',
    'Written by `npm run results` in `bench`. How it is measured, and what is compared: [the README](../README.md).',
    data.sockets && chart,
    data.sockets && socketsSection(data.sockets),
    data.guarantees && guaranteesSection(data.guarantees),
    data['in-process'] && inProcessSection(data['in-process']),
    data.profile && profileSection(data.profile),
    scaleSection(data),
    versionsSection(data),
  ];
  return `${sections.filter(Boolean).join('\n\n')}\n`;
}

const chart = [
  '<picture>',
  '  <source media="(prefers-color-scheme: dark)" srcset="chart-dark.svg">',
  '  <img src="chart-light.svg" alt="Throughput of the package beside what it replaces, with the number of faults that each route survives.">',
  '</picture>',
].join('\n');

const describe = ({ node, processor, memory, date }) => `${date}, Node ${node}, ${processor}, ${memory}.`;

function socketsSection({ run, figures }) {
  const tables = figures.map(({ connections, rows }) =>
    toMarkdown({
      title: `Throughput at ${connections} connections`,
      columns: ['', 'per second', 'processor time, µs', 'p50, ms', 'p99, ms', ...columns.map(({ title }) => title)],
      rows: rows.map(({ name, own, perSecond, cpuMicros, p50Ms, p99Ms, ratios }) => [
        own ? `**${name}**` : name,
        perSecond.toFixed(0),
        cpuMicros.toFixed(0),
        p50Ms.toFixed(2),
        p99Ms.toFixed(2),
        ...ratios.map(toRange),
      ]),
    }),
  );
  return [
    '## Over sockets',
    `${describe(run)} Medians of the rounds; a ratio is taken within each round, with its range in brackets.`,
    ...tables,
  ].join('\n\n');
}

function toRange(ratio) {
  if (ratio === undefined || ratio === null) return '';
  return `${ratio.median.toFixed(2)} (${ratio.least.toFixed(2)}–${ratio.most.toFixed(2)})`;
}

function guaranteesSection({ run, figures }) {
  const titles = figures[0].cells.map(({ title }) => title);
  return [
    '## Which faults each route survives',
    `${describe(run)} Tested on these very routes, with real processes on a real Redis and PostgreSQL.`,
    toMarkdown({
      title: 'Situations',
      columns: ['', ...titles],
      rows: figures.map(({ name, cells }) => [
        name.startsWith('this package') ? `**${name}**` : name,
        // JSON leaves out what is undefined.
        ...cells.map(({ holds, seen }) => (holds === true ? '✓' : `${markOf(holds)} ${seen}`)),
      ]),
    }),
    situationsText,
  ].join('\n\n');
}

const situationsText = `- **copy after success**: a second delivery is acknowledged and not handled again.
- **failure, then retry**: a handler that throws is not acknowledged, and the next delivery is handled.
- **copy meanwhile**: a copy that comes while the handler runs is not acknowledged before the handler has succeeded.
- **same id, other facts**: a delivery whose amount differs from the one that was handled is not acknowledged.
- **two concurrent copies**: 100 callbacks, each sent to two processes at the same moment, are handled once each.
- **killed in the handler**: the process dies, and the first retry, 30 s later, is handled by another one.
- **late failure**: a process is frozen beyond its lease, another one succeeds, and the first one then fails. The success is kept.
- **store down**: a delivery is refused within 30 s, and not handled. The process lives.

– means that the situation does not arise.`;

function inProcessSection({ run, figures }) {
  const [{ cpuMicros }] = ownShares(figures);
  const toRow = ({ name, cpuMicros: micros, ratio }) => [emphasize(name), micros.toFixed(1), ratio.toFixed(2)];
  return [
    '## Processor time',
    `${describe(run)} On memory, without sockets.`,
    toMarkdown({
      title: 'Processor time of a delivery',
      columns: ['', 'µs', '/ L1'],
      rows: figures.map(toRow),
      note: `The package's own share, listener less floor: ${cpuMicros.toFixed(1)} µs.`,
    }),
  ].join('\n\n');
}

function profileSection({ run, figures }) {
  return ['## Where the time goes', describe(run), toMarkdown(emphasizeRows(toTable(figures)))].join('\n\n');
}

const emphasize = (name) => (/^(router|listener)/.test(name) ? `**${name}**` : name);
const emphasizeRows = (table) => ({
  ...table,
  rows: table.rows.map(([name, ...cells]) => [emphasize(name), ...cells]),
});

function scaleSection(data) {
  const measured = scaleParts.filter((name) => name in data);
  if (measured.length === 0) return undefined;
  const parts = measured.map((name) =>
    [describe(data[name].run), ...data[name].figures.map(emphasizeRows).map(toMarkdown)].join('\n\n'),
  );
  return ['## Scale', 'Each part on one machine.', ...parts].join('\n\n');
}

function versionsSection(data) {
  const [part] = Object.values(data);
  if (part === undefined) return undefined;
  const lines = Object.entries(part.run.versions).map(([name, version]) => `- ${name} ${version}`);
  return `## Versions\n\n${lines.join('\n')}`;
}
