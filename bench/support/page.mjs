// The page of the results, in Markdown.
import { markOf } from '../guarantees.mjs';
import { ownShares } from '../in-process.mjs';
import { connections, toRange } from '../sockets.mjs';
import { situations } from './situations.mjs';

export function writePage({ machine: { date, node, processor, memory }, versions, ...measured }) {
  const lines = Object.entries(versions).map(([name, version]) => `- ${name} ${version}`);
  const sections = [
    '# Results',
    'Written by `npm run results` in `bench`. How it is measured, and what is compared: [the README](../README.md).',
    `${date}, Node ${node}, ${processor}, ${memory}.`,
    ...Object.values(sections).map((toSection) => toSection(measured)),
    `## Versions\n\n${lines.join('\n')}`,
  ];
  return `${sections.join('\n\n')}\n`;
}

/** What writes the section of each part, in their order. */
export const sections = {
  sockets: toThroughput,
  guarantees: toGuarantees,
  inProcess: toProcessorTime,
  sql: toSql,
  scale: toScale,
};

function toThroughput({ sockets }) {
  return [
    `## Throughput at ${connections} connections`,
    'Medians of the rounds; a ratio is taken within each round, with its range in brackets.',
    toTable(
      ['', 'per second', 'processor time, µs', 'p50, ms', 'p99, ms', '/ L1', '/ by hand'],
      sockets.map(({ name, own, perSecond, cpuMicros, p50Ms, p99Ms, toL1, toByHand }) => [
        own ? `**${name}**` : name,
        perSecond.toFixed(0),
        cpuMicros.toFixed(0),
        p50Ms.toFixed(2),
        p99Ms.toFixed(2),
        ...[toL1, toByHand].map(toRange),
      ]),
    ),
  ].join('\n\n');
}

function toGuarantees({ guarantees }) {
  const titles = guarantees[0].cells.map(({ title }) => title);
  const rows = guarantees.map(({ name, cells }) => [
    name.startsWith('this package') ? `**${name}**` : name,
    ...cells.map(({ holds, seen }) => (holds === true ? '✓' : `${markOf(holds)} ${seen}`)),
  ]);
  return [
    '## Which faults each route survives',
    'Tested on these very routes, with real processes on a real Redis and PostgreSQL.',
    toTable(['', ...titles], rows),
    situations.map(({ title, text }) => `- **${title}**: ${text}`).join('\n'),
    '– means that the situation does not arise.',
  ].join('\n\n');
}

function toProcessorTime({ inProcess }) {
  const [{ cpuMicros }] = ownShares(inProcess);
  const emphasize = (name) => (/^(router|listener)/.test(name) ? `**${name}**` : name);
  return [
    '## Processor time of a delivery',
    'On memory, without sockets.',
    toTable(
      ['', 'µs', '/ L1'],
      inProcess.map(({ name, cpuMicros: micros, ratio }) => [emphasize(name), micros.toFixed(1), ratio.toFixed(2)]),
    ),
    `The package's own share, listener less floor: ${cpuMicros.toFixed(1)} µs.`,
  ].join('\n\n');
}

function toSql({ sql }) {
  const toCell = ({ fresh, duplicate, cpu }) => [fresh, duplicate, cpu].map((ratio) => ratio.toFixed(2));
  const direct = sql.filter(({ network }) => network === 'direct');
  const delayed = ({ library, database }) =>
    sql.find((row) => row.library === library && row.database === database && row.network === 'delayed');
  return [
    '## SQL beside the same transaction by hand',
    'Throughput and processor time of `receive` without HTTP, 32 callbacks concurrently and a pool of 10, by those of the same transaction ' +
      'by hand: directly, and with half a millisecond of network. By hand there is no deadline, no second claim while ' +
      'a handler runs, no check before COMMIT and no `tx` that refuses what would break it. These databases wait for no disk, which makes ' +
      'everything else weigh more.',
    toTable(
      ['', 'fresh', 'duplicate', 'processor time', 'fresh, network', 'duplicate, network', 'processor time, network'],
      direct.map((row) => [`${row.library} on ${row.database}`, ...toCell(row), ...toCell(delayed(row))]),
    ),
  ].join('\n\n');
}

function toScale({ scale }) {
  return [
    '## Scale',
    '`receive` without HTTP, 32 callbacks concurrently, on a store that remembers many and on one that remembers few, in turns.',
    toTable(
      ['', 'remembered', 'bytes each', 'processor time, µs', 'processor time / few', 'duration / few'],
      scale.map(({ name, records, bytesEach, cpuMicros, timesCpu, timesWall }) => [
        name,
        records.toLocaleString('en'),
        bytesEach.toFixed(0),
        cpuMicros.toFixed(0),
        timesCpu.toFixed(2),
        timesWall.toFixed(2),
      ]),
    ),
  ].join('\n\n');
}

/** A table in Markdown, with its cells aligned for those who read the source. */
function toTable(columns, rows) {
  const widths = columns.map((_, i) => Math.max(3, ...[columns, ...rows].map((cells) => cells[i].length)));
  const toLine = (cells) => `| ${cells.map((cell, i) => cell.padEnd(widths[i])).join(' | ')} |`;
  const rule = widths.map((width, i) => (i === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  return [columns, rule, ...rows].map(toLine).join('\n');
}
