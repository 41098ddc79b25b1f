import { styleText } from 'node:util';

/** Prints to standard output. */
export function print(output: string): void {
  process.stdout.write(output);
}

/** One line of JSON. */
export function jsonLine(value: object): string {
  return `${JSON.stringify(value)}\n`;
}

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';

/** Styles text for standard output: plain in a pipe, with NO_COLOR and with TERM=dumb, unless FORCE_COLOR is set. */
export function paint(style: Style, text: string): string {
  return styleText(style, text);
}

/** The width of the terminal in columns; 80 where there is none. */
export function width(): number {
  // A terminal without a size has 0 columns.
  return process.stdout.columns || 80;
}

/** Replaces control characters: in text from elsewhere they would rewrite the line. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?');
}

/** Cuts text to so many characters. */
export function fit(text: string, characters: number): string {
  const all = Array.from(text);
  return all.length <= characters ? text : `${all.slice(0, Math.max(0, characters - 1)).join('')}…`;
}

/** Breaks text at its spaces into lines of at most so many characters. A longer word is broken, too. */
export function wrap(text: string, characters: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > characters) {
      lines.push(line);
      line = '';
    }
    line = line === '' ? word : `${line} ${word}`;
    for (; line.length > characters; line = line.slice(characters)) lines.push(line.slice(0, characters));
  }
  return [...lines, line];
}

/** The message of what was thrown. An error of several addresses has a code and no message. */
export function messageOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  return thrown.message || String((thrown as NodeJS.ErrnoException).code);
}
