/** The sandbox as a separate process. Asked over IPC: `idle` replies when it is, with all of its transfers. */
import { transferSandbox } from 'transfer-sandbox';
import { readAppOptions } from './app.js';

const sandbox = await transferSandbox(readAppOptions() as Parameters<typeof transferSandbox>[0]);

process.on('message', () => {
  void sandbox.idle().then(() => process.send?.(sandbox.transfers()));
});
process.on('disconnect', () => process.exit());
process.send?.({ baseUrl: sandbox.baseUrl, ...sandbox.keys.valid });
