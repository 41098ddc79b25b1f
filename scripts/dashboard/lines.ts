// Draws the lines of a panel as SVG.
import { round, stepsOf, valuesOf, type Box, type Filled, type Panel, type Span } from './panel.js';
import { escapeText, toText, type Theme } from './theme.js';

interface Drawn {
  readonly name: string;
  readonly colour: string;
  /** At each step of the span; `undefined` where there is none. */
  readonly values: readonly (number | undefined)[];
}

/** A line for each series, or one layer on another, with an axis and a legend. */
export function drawLines({ panel, lines }: Filled, plot: Box, span: Span, theme: Theme): string {
  const { unit = 'none', custom } = panel.fieldConfig.defaults;
  const isStacked = custom?.stacking !== undefined;
  const drawn = inOrder(panel, lines, span, theme);
  const sums = stepsOf(span).map((_, at) => drawn.reduce((sum, { values }) => sum + (values[at] ?? 0), 0));
  const highest = Math.max(...(isStacked ? sums : drawn.flatMap(({ values }) => values.map((value) => value ?? 0))));
  const { top, ticks } = axisTo(highest);
  const toX = (at: number): number => round(plot.x + (plot.w * at * span.step) / (span.end - span.start));
  const toY = (value: number): number => round(plot.y + plot.h * (1 - value / top));
  const grid = ticks.map((tick) => {
    const label = toText(tick, unit) + (tick === top && custom?.axisLabel !== undefined ? '/min' : '');
    return (
      `<line x1="${plot.x}" x2="${plot.x + plot.w}" y1="${toY(tick)}" y2="${toY(tick)}" stroke="${theme.grid}"/>` +
      `<text x="${plot.x - 8}" y="${toY(tick) + 4}" text-anchor="end" font-size="11" fill="${theme.muted}">${label}</text>`
    );
  });
  const shapes = isStacked ? stack(drawn, toX, toY) : drawn.map((line) => strokeLine(line, toX, toY));
  return grid.join('') + shapes.join('') + drawLegend(drawn, plot, theme);
}

/** Series that are zero all the time are left out, and the others come in the order of the panel's colours. */
function inOrder(panel: Panel, lines: Filled['lines'], span: Span, theme: Theme): Drawn[] {
  const { overrides } = panel.fieldConfig;
  const colours = new Map(
    overrides.map(({ matcher, properties }) => [matcher.options, properties[0]?.value.fixedColor ?? '']),
  );
  const names = [...colours.keys()];
  return lines
    .map(({ name, series }, index) => {
      const colour = colours.get(name) ?? '';
      const own = theme.named[colour] ?? (colour === '' ? undefined : colour);
      return { name, colour: own ?? theme.palette[index] ?? theme.muted, values: valuesOf(series, span) };
    })
    .filter(({ values }) => values.some((value) => value !== undefined && value > 0))
    .sort((one, other) => names.indexOf(one.name) - names.indexOf(other.name));
}

function stack(drawn: readonly Drawn[], toX: (at: number) => number, toY: (value: number) => number): string[] {
  let below: number[] = [];
  return drawn.map(({ colour, values }) => {
    const floor = values.map((_, at) => below[at] ?? 0);
    below = values.map((value, at) => (floor[at] ?? 0) + (value ?? 0));
    const up = below.map((value, at) => `${toX(at)},${toY(value)}`);
    const down = floor.map((value, at) => `${toX(at)},${toY(value)}`).reverse();
    return `<polygon points="${[...up, ...down].join(' ')}" fill="${colour}"/>`;
  });
}

function strokeLine({ colour, values }: Drawn, toX: (at: number) => number, toY: (value: number) => number): string {
  let isDown = false;
  const path = values.map((value, at) => {
    if (value === undefined) {
      isDown = false;
      return '';
    }
    const command = isDown ? 'L' : 'M';
    isDown = true;
    return `${command}${toX(at)} ${toY(value)}`;
  });
  return `<path d="${path.join('')}" fill="none" stroke="${colour}" stroke-width="2" stroke-linejoin="round"/>`;
}

function drawLegend(drawn: readonly Drawn[], plot: Box, theme: Theme): string {
  const lineEnd = plot.x + plot.w;
  let x = plot.x - 54;
  let y = plot.y + plot.h + 36;
  return drawn
    .map(({ name, colour }) => {
      const width = 24 + 6.2 * name.length;
      if (x + width > lineEnd) {
        x = plot.x - 54;
        y += 15;
      }
      const at = x;
      x += width;
      return (
        `<rect x="${round(at)}" y="${y - 8}" width="9" height="9" rx="2" fill="${colour}"/>` +
        `<text x="${round(at + 13)}" y="${y}" font-size="11" fill="${theme.muted}">${escapeText(name)}</text>`
      );
    })
    .join('');
}

/** A round number above `highest`, and the lines from 0 to it. */
function axisTo(highest: number): { top: number; ticks: number[] } {
  const target = Math.max(highest, 1e-3);
  const power = 10 ** Math.floor(Math.log10(target));
  const unit = [0.25, 0.5, 1, 2, 2.5].map((factor) => factor * power).find((each) => 4 * each >= target) ?? 5 * power;
  const count = Math.ceil(target / unit);
  return { top: count * unit, ticks: Array.from({ length: count + 1 }, (_, index) => index * unit) };
}
