import { styleText } from 'node:util';
import { isAsDesigned, type Cells, type Scene } from './scenes.js';

/** In 80 columns with the sign before them. */
const widths = [19, 13, 15, 25];

/** Colours text for standard output: plain in a pipe, with NO_COLOR and with TERM=dumb, unless FORCE_COLOR is set. */
export function paint(colour: 'green' | 'red' | 'dim', text: string): string {
  return styleText(colour, text);
}

export function header(): string {
  const titles = line(['Transfer', 'Attempts', 'Handlers', 'Outcome']);
  return `  ${titles}\n  ${paint('dim', line(widths.map((width) => '─'.repeat(width))))}`;
}

/** One row; where something else was expected, with that below it. */
export function row(scene: Scene, observed: Cells): string {
  const { transfer, expected } = scene;
  const text = line([transfer, observed.attempts, observed.runs, observed.outcomes]);
  if (isAsDesigned(scene, observed)) return `${paint('green', '✓')} ${text}`;
  const wish = line(['  expected', expected.attempts, expected.runs, expected.outcomes]);
  return `${paint('red', '✗')} ${text}\n  ${paint('red', wish)}`;
}

function line(cells: readonly string[]): string {
  return cells
    .map((cell, column) => cell.padEnd(widths[column] ?? 0))
    .join('  ')
    .trimEnd();
}
