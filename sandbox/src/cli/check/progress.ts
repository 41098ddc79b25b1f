import { fit } from '../../../../src/cli/terminal.js';

/** Without a terminal, a row that takes longer than this is named. */
const patienceMs = 10_000;

/** Shows on standard error which row is played: the table comes at the end, and a row may take minutes. */
export class Progress {
  #name = '';
  #notice: NodeJS.Timeout | undefined;

  /** Shows that the row `name` begins, which is one of `rows`. */
  begin(name: string, number: number, rows: number): void {
    this.end();
    this.#name = name;
    const place = `${name}, row ${number} of ${rows}`;
    if (process.stderr.isTTY) {
      process.stderr.write(`${fit(place, (process.stderr.columns || 80) - 1)}\r`);
      return;
    }
    this.#notice = setTimeout(() => process.stderr.write(`Still waiting for the end of ${place}.\n`), patienceMs);
  }

  /** Prints a sentence about the row, which remains. */
  say(sentence: string): void {
    this.#clear();
    process.stderr.write(`${this.#name}: ${sentence}\n`);
  }

  /** Clears what `begin` shows. */
  end(): void {
    clearTimeout(this.#notice);
    this.#clear();
  }

  #clear(): void {
    if (process.stderr.isTTY) process.stderr.write('\u001b[K');
  }
}
