import { fit } from '../../../../src/cli/terminal.js';

/** Without a terminal, a row that takes longer than this is named. */
const patienceMs = 10_000;

/** Shows on standard error which row is played: the table comes at the end, and a row may take minutes. */
export class Progress {
  #rows = 0;
  #name = '';
  #played = 0;
  #notice: NodeJS.Timeout | undefined;

  /** Sets how many rows there are. */
  expect(rows: number): void {
    this.#rows = rows;
  }

  /** Shows that the row `name` begins. */
  begin(name: string): void {
    this.end();
    this.#name = name;
    this.#played += 1;
    const place = `${name}, row ${this.#played} of ${this.#rows}`;
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
