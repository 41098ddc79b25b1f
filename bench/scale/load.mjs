// Steady load over sockets on one server or several, and what it costs.
import { ask, startNode, stop } from '../support/processes.mjs';

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
  const cpu = async () => {
    let micros = 0;
    for (const server of servers) micros += await ask(server, 'cpu');
    return micros;
  };
  return {
    end,
    /** Sends fresh callbacks for so long. Resolves with the figures of the generator, and the servers' processor time. */
    async measure(connections, durationMs) {
      const before = await cpu();
      const result = await ask(generator, { ports: servers.map(({ ready }) => ready), connections, durationMs });
      return { ...result, cpuMicros: ((await cpu()) - before) / result.count };
    },
  };
}
