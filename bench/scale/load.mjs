// Steady load over sockets on one server or several, and what it costs.
import { measureLoad, warmUp } from '../support/load.mjs';
import { startNode, stop } from '../support/processes.mjs';
import { medianOf } from '../support/statistics.mjs';

/** How many requests V8 needs to compile what it will, for each server. */
const warmUpRequests = 30_000;
const longestWarmUpMs = 30_000;

/** Starts servers and a generator of load. `ownCore` keeps the servers on core 0; otherwise they may use both. */
export async function startLoad({ file, args, env, workers = 1, ownCore = false }) {
  const core = ownCore ? 0 : undefined;
  const processes = [await startNode('generator.mjs')];
  const end = async () => {
    for (const each of processes) await stop(each);
  };
  try {
    for (let worker = 0; worker < workers; worker += 1) {
      processes.push(await startNode(`servers/${file}`, args, { env, core }));
    }
  } catch (error) {
    await end();
    throw error;
  }
  const [generator, ...servers] = processes;
  const measure = (connections, durationMs) => measureLoad(generator, servers, connections, durationMs);
  return {
    end,
    measure,
    warmUp: (connections) => warmUp(() => measure(connections, 1_000), workers * warmUpRequests, longestWarmUpMs),
  };
}

/** The median of one field as text. */
export function middle(results, field, digits = 2) {
  return medianOf(results, field).toFixed(digits);
}
