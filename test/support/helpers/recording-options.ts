import { memoryStore, type TransferCallback } from 'transfer-callbacks';
import { recordingLogger } from './logger.js';

/** Options with a memory store, and with handlers and a logger that record what they get in `handled` and `logged`. */
export function recordingOptions() {
  const handled: TransferCallback[] = [];
  const record = (callback: TransferCallback): void => {
    handled.push(callback);
  };
  const logger = recordingLogger();
  const options = { store: memoryStore(), onSuccess: record, onFailed: record, logger };
  return { handled, logged: logger.lines, options };
}
