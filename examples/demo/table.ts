import { styleText } from 'node:util';
import { isAsDesigned, type Cells, type Observed, type Scene } from './scenes.js';

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
  const expectedLine = line(['  expected', expected.attempts, expected.runs, expected.outcomes]);
  return `${paint('red', '✗')} ${text}\n  ${paint('red', expectedLine)}`;
}

/** The closing table: how many transfers and forgeries there were, and how often the merchant acted on them. */
export function summary(scenes: readonly Scene[], observed: readonly Observed[]): string {
  const count = (isForged: boolean): readonly (string | number)[] => {
    const some = observed.filter((_, index) => (scenes[index]?.isForged ?? false) === isForged);
    const handled = (times: (handled: number) => boolean): number => some.filter((each) => times(each.handled)).length;
    return [
      some.length,
      some.reduce((sum, { made }) => sum + made, 0),
      ...[handled((times) => times === 1), handled((times) => times > 1), handled((times) => times === 0)],
    ];
  };
  const rows = [
    ['', '', 'Attempts', 'Handled once', 'Twice', 'Never'],
    ['Transfers', ...count(false)],
    ['Forgeries', ...count(true)],
  ];
  const columns = [9, 3, 8, 12, 5, 5];
  return rows
    .map((cells) => `  ${cells.map((cell, column) => String(cell).padStart(columns[column] ?? 0)).join('  ')}`)
    .join('\n');
}

function line(cells: readonly string[]): string {
  return cells
    .map((cell, column) => cell.padEnd(widths[column] ?? 0))
    .join('  ')
    .trimEnd();
}
