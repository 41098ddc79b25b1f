import { transferFate, type TransferFate } from '../client/index.js';
import { storeTimeoutMs, type App } from './environment.js';

/** How long the service may take before a line says that it is waited for, in milliseconds. */
const patienceMs = 3_000;

/** Reads what became of a transfer, at the service and in the store of the app. */
export async function readFate(id: string, { client, receiver, store, serviceName }: App): Promise<TransferFate> {
  const notice = setTimeout(() => {
    process.stderr.write(`Still waiting for ${serviceName ?? 'the service'}, which is asked up to 3 times.\n`);
  }, patienceMs);
  try {
    return await transferFate({ id, client, receiver, store, storeTimeoutMs });
  } finally {
    clearTimeout(notice);
  }
}
