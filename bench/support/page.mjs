// The page of the results, in Markdown.
import { markOf } from '../guarantees.mjs';
import { ownShares } from '../in-process.mjs';
import { toRange } from '../sockets.mjs';

export function writePage({ machine: { date, node, processor, memory }, versions, ...measured }) {
  const lines = Object.entries(versions).map(([name, version]) => `- ${name} ${version}`);
  const sections = [
    '# Results',
    'Written by `npm run results` in `bench`. How it is measured, and what is compared: [the README](../README.md).',
    `${date}, Node ${node}, ${processor}, ${memory}.`,
    toThroughput(measured),
    toGuarantees(measured),
    toProcessorTime(measured),
    toSql(measured),
    toScale(measured),
    `## Versions\n\n${lines.join('\n')}`,
  ];
  return `${sections.join('\n\n')}\n`;
}

function toThroughput({ sockets, connections }) {
  return [
    `## Throughput at ${connections} connections`,
    'Medians of the rounds; a ratio is taken within each round, with its range in brackets.',
    toTable(
      ['', 'per second', 'processor time, µs', 'p50, ms', 'p99, ms', '/ L1', '/ by hand', '/ powertools'],
      sockets.map(({ name, own, perSecond, cpuMicros, p50Ms, p99Ms, toL1, toByHand, toPowertools }) => [
        own ? `**${name}**` : name,
        perSecond.toFixed(0),
        cpuMicros.toFixed(0),
        p50Ms.toFixed(2),
        p99Ms.toFixed(2),
        ...[toL1, toByHand, toPowertools].map(toRange),
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
    situationsText,
  ].join('\n\n');
}

const situationsText = `- **copy after success**: a second delivery is acknowledged and not handled again.
- **failure, then retry**: a handler that throws is not acknowledged, and the next delivery is handled.
- **write, then failure**: a handler that is not idempotent writes and then throws. After the next delivery its write is there once.
- **copy meanwhile**: a copy that comes while the handler runs is not acknowledged before the handler has succeeded.
- **same id, other facts**: a delivery whose amount differs from the one that was handled is not acknowledged.
- **two concurrent copies**: 100 callbacks, each sent to two processes at the same moment, are handled once each.
- **killed in the handler**: the process dies, and the first retry, 30 s later, is handled by another one.
- **late failure**: a process is frozen beyond its lease, another one succeeds, and the first one then fails. The success is kept.
- **store down**: a delivery is refused within 30 s, and not handled. The process lives.

– means that the situation does not arise.`;

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
