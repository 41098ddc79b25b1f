import { memoryStore, type Logger, type TransferCallback } from 'transfer-callbacks';

export interface LogLine {
  readonly level: 'warn' | 'error';
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/** A logger that keeps its lines, the oldest first. */
export interface RecordingLogger extends Logger {
  readonly lines: readonly LogLine[];
}

export function recordingLogger(): RecordingLogger {
  const lines: LogLine[] = [];
  const record =
    (level: LogLine['level']) =>
    (details: object, message: string): void => {
      lines.push({ level, message, details: { ...details } });
    };
  return { lines, warn: record('warn'), error: record('error') };
}

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
