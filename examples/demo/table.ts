import { isAsDesigned, type Cells, type Scene } from './scenes.js';

const widths = [27, 13, 27, 25];

type Colour = 'green' | 'red' | 'dim';

const codes: Record<Colour, [number, number]> = { green: [32, 39], red: [31, 39], dim: [2, 22] };

/** Whether to colour what is printed: on a terminal that can, unless NO_COLOR says no. */
const coloured = process.stdout.isTTY && process.stdout.hasColors();

export function paint(colour: Colour, text: string): string {
  const [on, off] = codes[colour];
  return coloured ? `\u001B[${on}m${text}\u001B[${off}m` : text;
}

export function header(): string {
  const titles = line(['Transfer', 'Attempts', 'What the handlers did', 'Outcome']);
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
