// The load of generator.mjs on one server or several.
import { ask } from './processes.mjs';

/** Resolves with the figures of the generator, and the servers' processor time per request. */
export async function measureLoad(generator, servers, connections, durationMs) {
  const before = await readCpuMicros(servers);
  const result = await ask(generator, { ports: servers.map(({ ready }) => ready), connections, durationMs });
  return { ...result, cpuMicros: ((await readCpuMicros(servers)) - before) / result.count };
}

async function readCpuMicros(servers) {
  let micros = 0;
  for (const server of servers) micros += await ask(server, 'cpu');
  return micros;
}

/**
 * Calls `measure` until so many requests got a response, or until `longestMs` have passed: before V8 has compiled a server,
 * it may look half as fast as it is.
 */
export async function warmUp(measure, requests, longestMs) {
  const giveUpAt = performance.now() + longestMs;
  for (let responded = 0; responded < requests && performance.now() < giveUpAt;) responded += (await measure()).count;
}
