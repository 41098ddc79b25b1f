/** `npm run soak`: minutes of steady load, three by default. `npm run soak -- 10` takes ten. */
import { soak } from './soak.js';

const minutes = Number(process.argv[2] ?? 3);
if (!(minutes > 0)) throw new Error(`Expected the minutes to be a number above 0, got ${process.argv[2]}.`);
/** What a record of a delivery that is never freed would exceed by far. */
const mostHeapGrowth = 100;

const startedAt = performance.now();
const { callbacks, outcomes, faults, heapGrowth } = await soak({
  callbacksPerLap: 4_000,
  goOn: () => performance.now() - startedAt < minutes * 60_000,
  onLap: ({ callbacks: sent, heapBytes }) => {
    const seconds = (performance.now() - startedAt) / 1_000;
    console.log(`${seconds.toFixed(0).padStart(5)} s  ${sent} callbacks  heap ${(heapBytes / 2 ** 20).toFixed(1)} MiB`);
  },
});
const found = [...faults];
if (heapGrowth > mostHeapGrowth) found.push(`the heap grew by ${heapGrowth.toFixed(0)} bytes for each callback`);
console.log(`${callbacks} callbacks, outcomes ${JSON.stringify(outcomes)}`);
console.log(`The heap grew by ${heapGrowth.toFixed(1)} bytes for each callback.`);
for (const fault of found.slice(0, 20)) console.error(`Fault: ${fault}`);
console.log(found.length === 0 ? 'Nothing was lost, doubled or leaked.' : `${found.length} faults.`);
process.exitCode = found.length === 0 ? 0 : 1;
