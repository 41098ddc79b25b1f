/**
 * One process of a merchant's app that runs as two, with claims in a file. The handler of the first process never ends:
 * it tells its parent, which kills it.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Database from 'libsql';
import { transferCallbackListener } from 'transfer-callbacks';
import { sqliteStore } from '../custom-store.js';

const [file = '', role] = process.argv.slice(2);

const listener = transferCallbackListener({
  store: sqliteStore(new Database(file, { timeout: 50 })),
  async onSuccess({ data }) {
    process.send?.(role === 'first' ? { isHandling: true } : { run: `paid ${data.amount}` });
    // A timer keeps the process from ending by itself.
    if (role === 'first') await new Promise((resolve) => setTimeout(resolve, 60_000));
  },
  onFailed: () => undefined,
  onOutcome({ outcome }) {
    process.send?.({ outcome });
  },
  logger: false,
  // The defaults, 15 s and 2.5 s, suit production. The reader of the demonstration should not wait as long.
  leaseMs: 400,
  storeTimeoutMs: 100,
});
const server = createServer(listener).listen(0, '127.0.0.1');
await once(server, 'listening');
process.on('disconnect', () => process.exit());
process.send?.({ port: (server.address() as AddressInfo).port });
