import { styleText } from 'node:util';

/** Shows the characters of a string from elsewhere that would rewrite the line. */
export { escapeUnprintable as printable, messageOf } from '../lib/text.js';

/** Standard output, which has the results alone: `process.stdout` of an app that was loaded is standard error. */
export const stdout = process.stdout;

/** Prints to standard output. */
export function print(output: string): void {
  stdout.write(output);
}

/** One line of JSON. */
export function jsonLine(value: object): string {
  return `${JSON.stringify(value)}\n`;
}

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';

/** Styles text for standard output: plain in a pipe, with NO_COLOR and with TERM=dumb, unless FORCE_COLOR is set. */
export function paint(style: Style, text: string): string {
  return styleText(style, text, { stream: stdout });
}

/** The width of the terminal in columns; 80 where there is none. Text for fewer than 20 columns helps nobody. */
export function width(): number {
  // A terminal without a size has 0 columns.
  return Math.max(20, stdout.columns || 80);
}

/** East Asian characters and emoji, which take two columns. */
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;

function columnsOf(character: string): number {
  if (/\p{M}/u.test(character)) return 0;
  return wide.test(character) ? 2 : 1;
}

/** Cuts text to this many columns. */
export function fit(text: string, columns: number): string {
  const [first = '', ...rest] = breakWord(text, columns);
  if (rest.length === 0) return first;
  const [shorter = ''] = columns > 1 ? breakWord(text, columns - 1) : [];
  return `${shorter}…`;
}

/** Breaks text at its spaces into lines of at most this many columns. A longer word is also broken. */
export function wrap(text: string, columns: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    const fits = breakWord(longer, columns).length === 1;
    if (!fits && line !== '') lines.push(line);
    const pieces = fits ? [longer] : breakWord(word, columns);
    lines.push(...pieces.slice(0, -1));
    line = pieces.at(-1) ?? '';
  }
  return [...lines, line];
}

/** Breaks text into pieces of at most this many columns, or of one character. Returns at least one piece. */
function breakWord(text: string, columns: number): string[] {
  const pieces: string[] = [];
  let piece = '';
  let taken = 0;
  for (const character of text) {
    const more = columnsOf(character);
    if (taken + more > columns && piece !== '') {
      pieces.push(piece);
      piece = '';
      taken = 0;
    }
    piece += character;
    taken += more;
  }
  return [...pieces, piece];
}
