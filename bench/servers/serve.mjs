import { createServer } from 'node:http';

/** The servers of this process, where in-process-server.mjs has imported them. */
export const served = [];

/** Serves on a free port and sends it to the parent. Asked for `cpu`, it sends the processor time used so far, in µs. */
export function serve(listener) {
  const server = createServer(listener);
  if (process.env.IN_PROCESS !== undefined) {
    served.push(server);
    return;
  }
  server.listen(0, '127.0.0.1', () => process.send(server.address().port));
  process.on('message', (message) => {
    // guarantees.mjs sends other messages, for the handler.
    if (message !== 'cpu') return;
    const { user, system } = process.cpuUsage();
    process.send(user + system);
  });
  process.on('disconnect', () => process.exit());
}

/** A client of the kind named, connected to the Redis of this run. All of its settings are the defaults. */
export async function connectRedis(kind) {
  const port = Number(process.env.REDIS_PORT);
  // Without a listener a lost connection would end the process.
  const onError = () => undefined;
  if (kind === 'node-redis') {
    const { createClient } = await import('redis');
    return createClient({ socket: { port, host: '127.0.0.1' } })
      .on('error', onError)
      .connect();
  }
  const { Redis } = await import('ioredis');
  return new Redis({ port, host: '127.0.0.1' }).on('error', onError);
}
