// Callbacks through a store, beside the same transaction by hand.
import { callbackText } from '../callback.mjs';
import { packageUnderTest } from '../package.mjs';
import { median } from './statistics.mjs';

export const concurrent = 32;

/** Resolves with the milliseconds that all took together, and those of this process's processor time. */
async function drive(ids, run) {
  const left = ids.values();
  const cpu = process.cpuUsage();
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: concurrent }, async () => {
      for (const id of left) await run(id);
    }),
  );
  const { user, system } = process.cpuUsage(cpu);
  return { ms: performance.now() - startedAt, cpuMs: (user + system) / 1_000 };
}

/** Returns the ratios of one store, in rounds whose order changes: medians. */
export async function measure({ store, book, byHand }, { rounds, callbacks }) {
  const { transferCallbackReceiver, transferCallbackSchema } = packageUnderTest;
  await store.migrate();
  const receiver = transferCallbackReceiver({
    store,
    logger: false,
    onSuccess: ({ data }, { tx }) => book(tx, data.id),
    onFailed: () => undefined,
  });
  const receive = (expected) => async (id) => {
    const { outcome, error } = await receiver.receive(JSON.parse(callbackText(id)));
    if (outcome !== expected) throw new Error(`Expected ${expected}, got ${outcome}.`, { cause: error });
  };
  const handle = (id) => byHand(transferCallbackSchema.parse(JSON.parse(callbackText(id))).data.id, book);
  const ratios = { fresh: [], duplicate: [], cpu: [] };
  // The first round warms up.
  for (let round = 0; round <= rounds; round += 1) {
    const ids = [0, 1].map(() => Array.from({ length: callbacks }, () => crypto.randomUUID()));
    const drives = [() => drive(ids[0], receive('processed')), () => drive(ids[1], handle)];
    const results = [];
    for (const which of round % 2 === 0 ? [0, 1] : [1, 0]) results[which] = await drives[which]();
    const [ours, theirs] = results;
    const [again, theirsAgain] = [await drive(ids[0], receive('duplicate')), await drive(ids[1], handle)];
    if (round === 0) continue;
    ratios.fresh.push(theirs.ms / ours.ms);
    ratios.duplicate.push(theirsAgain.ms / again.ms);
    ratios.cpu.push(ours.cpuMs / theirs.cpuMs);
  }
  await receiver.close();
  return Object.fromEntries(Object.entries(ratios).map(([name, values]) => [name, median(values)]));
}

export function print(name, { fresh, duplicate, cpu }) {
  const ratios = `fresh ${fresh.toFixed(2)}   duplicate ${duplicate.toFixed(2)}   processor time ${cpu.toFixed(2)}`;
  console.log(`${name.padEnd(34)} ${ratios}`);
}
