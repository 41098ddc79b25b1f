import { fstatSync } from 'node:fs';
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { describeGiven } from '../lib/checks.js';
import { didYouMean } from '../lib/text.js';
import type { TransferCallbackError } from '../node.js';

/** The arguments or the configuration are wrong: shown as it is, with exit code 2. */
export class UsageError extends Error {}

/**
 * Words what is wrong with an option, under the name that it has here, without the code to write, which is for
 * programs.
 */
export function describeInvalid(name: string, { expected = '', got = '' }: Partial<TransferCallbackError>): string {
  return `Expected ${name} to be ${expected}, got ${got}.`;
}

export const text = { type: 'string' } as const;
export const flag = { type: 'boolean' } as const;

/** Parses a command's arguments. Throws UsageError, also for an option that is given twice and takes one value. */
export function parseArguments<const T extends NonNullable<ParseArgsConfig['options']>>(
  args: readonly string[],
  options: T,
) {
  const { values, positionals, tokens } = parseStrictly(args, options);
  const seen = new Set<string>();
  for (const token of tokens) {
    if (token.kind !== 'option' || options[token.name]?.multiple === true) continue;
    if (seen.has(token.name)) throw new UsageError(`Expected ${token.rawName} once, got it twice.`);
    seen.add(token.name);
  }
  return { values, positionals };
}

function parseStrictly<const T extends NonNullable<ParseArgsConfig['options']>>(args: readonly string[], options: T) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, tokens: true });
  } catch (error) {
    const { message } = error as Error;
    const [, name] = /^Option '(?:-\w, )?(--[\w-]+).*argument is ambiguous/.exec(message) ?? [];
    if (name !== undefined) {
      throw new UsageError(`Expected a value for ${name}; one that begins with a dash is given as ${name}=-1.`);
    }
    // Node repeats what was given, which may be a URL with a password.
    if (message.startsWith('Unknown option')) {
      const [, option] = /^Unknown option '(--?[\w-]{1,40})'/.exec(message) ?? [];
      if (option === undefined) throw new UsageError('Unknown option.');
      const advice = adviseName(option.replace(/^-+/, ''), [...Object.keys(options), 'help'], '--');
      throw new UsageError(`Unknown option '${option}'${advice}`);
    }
    // Node adds advice after the first sentence.
    throw new UsageError(`${String(message.split('. ')[0]).replace(/\.$/, '')}.`);
  }
}

/** Ends the error of an unknown name: by the name that was probably meant, or else by all. */
export function adviseName(given: string, known: readonly string[], prefix = ''): string {
  const meant = didYouMean(given, known);
  if (meant !== undefined) return `. Did you mean \`${prefix}${meant}\`?`;
  return `; known are ${known.map((name) => prefix + name).join(', ')}.`;
}

/**
 * Throws UsageError if there are more arguments than `count` besides the options. `urlOption` is the option that takes
 * a URL.
 */
export function allowPositionals(positionals: readonly string[], count: number, urlOption?: string): void {
  const excess = positionals[count];
  if (excess === undefined) return;
  const advice = urlOption !== undefined && /^https?:/.test(excess) ? ` Write ${urlOption} before the URL.` : '';
  throw new UsageError(`Unexpected argument: got ${describeGiven(excess)}.${advice}`);
}

export function toNumber(name: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (/^-?\d+(\.\d+)?$/.test(value)) return Number(value);
  throw new UsageError(`Expected ${name} to be a number, got ${describeGiven(value)}.`);
}

/** A transfer that a line of standard input names. */
export interface GivenTransfer {
  readonly id: string;
  /** The time after the tab, as it was written. */
  readonly createdAt: string | undefined;
}

/** The ids of standard input, one per line, each once. Throws UsageError if nothing is piped in. */
export async function readIds(): Promise<GivenTransfer[]> {
  const input = fstatSync(0);
  // A line of cron without its query reads /dev/null, and would be green every night.
  if (input.isDirectory() || (input.isCharacterDevice() && !process.stdin.isTTY)) {
    throw new UsageError('Expected ids on standard input, one per line: pipe them in, or redirect a file.');
  }
  if (process.stdin.isTTY) process.stderr.write('Ids, one per line, until Ctrl+D:\n');
  let read = '';
  for await (const chunk of process.stdin.setEncoding('utf8') as AsyncIterable<string>) read += chunk;
  const lines = read.split('\n').map((line) => line.trim());
  const given = lines.filter((line) => line !== '').map((line) => line.split(/\s*\t\s*/));
  return [...new Map(given.map(([id = '', createdAt]) => [id, { id, createdAt }])).values()];
}
