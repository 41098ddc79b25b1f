import { createServer } from 'node:http';

/** The servers of this process, where in-process-server.mjs has imported them. */
export const served = [];

/** Serves on a free port, tells run.mjs which, and whenever it asks, the processor time used so far; ends with it. */
export function serve(listener) {
  const server = createServer(listener);
  if (process.env.IN_PROCESS !== undefined) {
    served.push(server);
    return;
  }
  server.listen(0, '127.0.0.1', () => process.send(server.address().port));
  process.on('message', () => {
    const { user, system } = process.cpuUsage();
    process.send(user + system);
  });
  process.on('disconnect', () => process.exit());
}

/** A client of the kind named, connected to the Redis of this run. All of its settings are the defaults. */
export async function connectRedis(kind) {
  const port = Number(process.env.REDIS_PORT);
  if (kind === 'node-redis') {
    const { createClient } = await import('redis');
    return createClient({ socket: { port, host: '127.0.0.1' } }).connect();
  }
  const { Redis } = await import('ioredis');
  return new Redis({ port, host: '127.0.0.1', enableAutoPipelining: kind === 'ioredis-auto' });
}
