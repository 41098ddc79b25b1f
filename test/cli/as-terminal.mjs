/** Imported before a command, makes it find a terminal of TERMINAL_COLUMNS columns, or 80, at its standard output and standard error. */
import { WriteStream } from 'node:tty';

// Node's own methods: they look at the environment alone.
const { getColorDepth, hasColors } = WriteStream.prototype;
for (const stream of [process.stdout, process.stderr]) {
  Object.assign(stream, { isTTY: true, columns: Number(process.env.TERMINAL_COLUMNS ?? 80), getColorDepth, hasColors });
}
