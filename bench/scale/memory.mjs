import { ask, startNode, stop } from '../support/processes.mjs';

/** Cost per callback and memory, from ten thousand remembered ids to a million. */
export async function measureMemory({ quick }) {
  const sizes = quick ? [10_000, 100_000] : [10_000, 30_000, 100_000, 300_000, 1_000_000];
  const worker = await startNode('scale/memory-worker.mjs', [], { flags: ['--expose-gc'] });
  try {
    const rows = await ask(worker, { sizes });
    return [
      {
        title: 'Memory store: `receive` with a fresh id, by the number of ids remembered',
        columns: ['ids', 'processor time, µs', 'heap per id, bytes', 'store call, p99.9, ms', 'longest store call, ms'],
        rows: rows.map(({ size, cpuMicros, bytesPerId, p999Ms, longestMs }) => [
          size === 'full' ? 'at `maxEntries`, evicting' : size.toLocaleString('en'),
          cpuMicros.toFixed(1),
          bytesPerId.toFixed(0),
          p999Ms.toFixed(3),
          longestMs.toFixed(2),
        ]),
      },
    ];
  } finally {
    await stop(worker);
  }
}
