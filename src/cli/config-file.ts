import { spawnSync } from 'node:child_process';
import { Console } from 'node:console';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { UsageError } from './arguments.js';
import { messageOf } from './terminal.js';

/** The name of the file that errors and help suggest. */
export const configFile = 'transfer-callbacks.config.mjs';

const fileNames = ['mjs', 'js', 'cjs', 'ts'].map((extension) => `transfer-callbacks.config.${extension}`);

/** How long the file may load before a line reports that it is waited for, in milliseconds. */
const patienceMs = 3_000;

/** How long the file may load at all, in milliseconds. */
const longestLoadMs = 30_000;

/** Returns the file that `--config` names, or else the config file in the working directory. Throws UsageError. */
export function findConfigFile(given: string | undefined): string | undefined {
  // The value is not shown: a URL with a password may have been given by mistake.
  if (given !== undefined && !existsSync(given)) throw new UsageError('Expected --config to name a file that exists.');
  return given ?? fileNames.find((name) => existsSync(name));
}

/** Loads a file, and returns what it exports. Throws UsageError, or an error if it does not finish loading in time. */
export async function loadExports(file: string): Promise<Record<string, unknown>> {
  // Standard output has the results alone: what the app and its handlers print goes to standard error. pino asks for
  // `fd`.
  globalThis.console = new Console(process.stderr);
  Object.defineProperty(process, 'stdout', { value: process.stderr });
  // The timers keep no process alive: with nothing else left to wait for, `beforeExit` reports it immediately.
  const notice = setTimeout(() => process.stderr.write(`Still loading ${file}.\n`), patienceMs).unref();
  let end: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_resolve, reject) => {
    const error = new Error(`${file} did not finish loading within 30 s. Does it wait for a connection?`);
    end = setTimeout(reject, longestLoadMs, error).unref();
  });
  try {
    const loaded = (await Promise.race([importFile(file), tooLate])) as Record<string, unknown>;
    // A module in CommonJS may have its exports in `default` only.
    return { ...(loaded.default as object | undefined), ...loaded };
  } finally {
    clearTimeout(notice);
    clearTimeout(end);
  }
}

async function importFile(file: string): Promise<unknown> {
  try {
    return await import(pathToFileURL(resolve(file)).href);
  } catch (error) {
    throw new UsageError(`${file} cannot be loaded: ${explain(file, error)}`, { cause: error });
  }
}

function explain(file: string, error: unknown): string {
  const message = messageOf(error);
  if (/^Unknown file extension "\.[cm]?tsx?"/.test(message)) {
    return `${message}. Import the JavaScript that your build makes, or set NODE_OPTIONS='--import tsx'.`;
  }
  const place = error instanceof SyntaxError ? findSyntaxError(file, error) : undefined;
  if (place === undefined) {
    const frame = findOwnFrame(error);
    return frame === undefined ? message : `${message} (${frame})`;
  }
  const isModule = /^Cannot use import statement|^Unexpected token 'export'/.test(message);
  if (isModule && place.startsWith(resolve(file))) return `${message} (${place}). Rename it to ${configFile}.`;
  return `${message}. Correct ${place}.`;
}

/** Returns the file and the line in the app, not in a package, where an error was thrown. */
function findOwnFrame(error: unknown): string | undefined {
  const frames =
    error instanceof Error ? String(error.stack).matchAll(/^ +at .*?\(?(?:file:\/\/)?([^()\s]+:\d+):\d+\)?$/gm) : [];
  return Array.from(frames, ([, frame = '']) => frame).find((frame) => !/^node:|node_modules/.test(frame));
}

/** Returns the file and the line of a syntax error. */
function findSyntaxError(file: string, { stack }: SyntaxError): string | undefined {
  // The error of an import has no place of its own. Node's check of the syntax prints it, and runs nothing.
  const { stderr } = spawnSync(process.execPath, ['--check', file], { encoding: 'utf8' });
  return [stack, stderr].map((text) => /^(?:file:\/\/)?((?:\/|[A-Z]:).*:\d+)$/m.exec(String(text))?.[1]).find(Boolean);
}
