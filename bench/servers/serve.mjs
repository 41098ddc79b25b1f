// What the servers have in common: how they are served, their handler, their Redis, and the schema of those by hand.
import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import { z } from 'zod';

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

/** Whether a handler waits until it is told how to end, as guarantees.mjs has it. In a benchmark handlers are empty. */
export const isTold = process.env.HANDLER === 'told';

// `once` listens for errors too: as many listeners as there are handlers running.
const tellings = new EventEmitter().setMaxListeners(0);
process.on('message', ({ id, how }) => {
  if (id !== undefined) tellings.emit(id, how);
});

async function handleAsTold({ id }) {
  const told = once(tellings, id);
  process.send({ handling: id });
  const [how] = await told;
  if (how === 'fail') throw new Error('The handler was told to fail.');
}

/** Handles the `data` of a callback. */
export const handle = isTold ? handleAsTold : async () => {};

/** A client of the kind named, connected to the Redis of this run. All of its settings are the defaults. */
export async function connectRedis(kind) {
  const port = Number(process.env.REDIS_PORT);
  if (kind === 'node-redis') {
    const { createClient } = await import('redis');
    return createClient({ socket: { port, host: '127.0.0.1' } }).connect();
  }
  const { Redis } = await import('ioredis');
  return new Redis({ port, host: '127.0.0.1' });
}

/** The payload as one writes it down in a quarter of an hour. */
export const schema = z.object({
  event: z.enum(['transfer.success', 'transfer.failed']),
  data: z.object({
    id: z.string().min(1),
    externalId: z.string(),
    reference: z.string(),
    status: z.enum(['SUCCESS', 'FAILED']),
    amount: z.number(),
    currency: z.string(),
    paymentMethod: z.enum(['mobile_money', 'bank']),
    walletNumber: z.string().nullable(),
    bankAccount: z.record(z.string(), z.unknown()).nullable(),
    provider: z.string(),
    failureReason: z.string().nullable(),
    timestamp: z.string(),
    externalReference: z.string(),
    vouchercode: z.string(),
  }),
});
