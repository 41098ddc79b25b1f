// Draws the dashboard as SVG from the values of its own queries.
import type { Series } from './prometheus.js';
import { escapeText, toText, type Theme } from './theme.js';

/** What is used of a panel of ops/dashboard.json. */
export interface Panel {
  readonly type: 'stat' | 'timeseries' | 'heatmap';
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
  readonly fieldConfig: {
    readonly defaults: {
      readonly unit?: string;
      readonly decimals?: number;
      readonly noValue?: string;
      readonly custom?: { readonly stacking?: object; readonly axisLabel?: string };
      readonly thresholds?: { readonly steps: readonly { readonly color: string; readonly value: number | null }[] };
    };
    readonly overrides: readonly {
      readonly matcher: { readonly options: string };
      readonly properties: readonly { readonly value: { readonly fixedColor?: string } }[];
    }[];
  };
}

/** A panel with the values that its queries have returned. */
export interface Filled {
  readonly panel: Panel;
  /** Of a stat. */
  readonly value?: number | undefined;
  /** Of the others, with their names. */
  readonly lines: readonly { readonly name: string; readonly series: Series }[];
}

/** The stretch of time that the picture shows, in seconds since 1970. */
export interface Span {
  readonly start: number;
  readonly end: number;
  readonly step: number;
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

const columnWidth = 50;
const unitHeight = 29;
const gap = 10;

/** Draws all panels in the places that the dashboard gives them. */
export function drawDashboard(filled: readonly Filled[], span: Span, theme: Theme): string {
  const width = 24 * columnWidth + gap;
  const height = Math.max(...filled.map(({ panel: { gridPos } }) => (gridPos.y + gridPos.h) * unitHeight)) + gap;
  const panels = filled.map((each) => drawPanel(each, span, theme));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="Inter, system-ui, sans-serif" font-size="12">
<rect width="${width}" height="${height}" rx="8" fill="${theme.page}"/>
${panels.join('\n')}
</svg>
`;
}

function drawPanel(filled: Filled, span: Span, theme: Theme): string {
  const { type, title, gridPos } = filled.panel;
  const box: Box = {
    x: gridPos.x * columnWidth + gap,
    y: gridPos.y * unitHeight + gap,
    w: gridPos.w * columnWidth - gap,
    h: gridPos.h * unitHeight - gap,
  };
  const frame =
    `<rect x="${box.x}" y="${box.y}" width="${box.w}" height="${box.h}" rx="6" fill="${theme.panel}" stroke="${theme.border}"/>` +
    `<text x="${box.x + 12}" y="${box.y + 21}" font-weight="600" fill="${theme.text}">${escapeText(title)}</text>`;
  if (type === 'stat') return frame + drawStat(filled, box, theme);
  const plot: Box = { x: box.x + 66, y: box.y + 38, w: box.w - 84, h: box.h - (type === 'heatmap' ? 66 : 104) };
  const body = type === 'heatmap' ? drawHeatmap(filled, plot, span, theme) : drawLines(filled, plot, span, theme);
  return frame + drawMinutes(plot, span, theme) + body;
}

function drawStat({ panel, value }: Filled, box: Box, theme: Theme): string {
  const { unit = 'none', decimals, noValue = '', thresholds } = panel.fieldConfig.defaults;
  const shown = value === undefined ? noValue : toText(value, unit, decimals);
  const step = thresholds?.steps.findLast((each) => (value ?? 0) >= (each.value ?? -Infinity));
  const fill = value === undefined ? theme.muted : (theme.named[step?.color ?? ''] ?? theme.text);
  return `<text x="${box.x + box.w / 2}" y="${box.y + box.h / 2 + 24}" text-anchor="middle" font-size="36" font-weight="600" fill="${fill}">${escapeText(shown)}</text>`;
}

/** The minutes below a plot. */
function drawMinutes(plot: Box, span: Span, theme: Theme): string {
  const minutes = Math.floor((span.end - span.start) / 60);
  return Array.from({ length: minutes + 1 }, (_, minute) => {
    const x = round(plot.x + (plot.w * minute * 60) / (span.end - span.start));
    const label = minute === 0 ? '0 min' : String(minute);
    return `<text x="${x}" y="${plot.y + plot.h + 17}" text-anchor="middle" font-size="11" fill="${theme.muted}">${label}</text>`;
  }).join('');
}

interface Drawn {
  readonly name: string;
  readonly colour: string;
  /** At each step of the span; `undefined` where there is none. */
  readonly values: readonly (number | undefined)[];
}

function drawLines({ panel, lines }: Filled, plot: Box, span: Span, theme: Theme): string {
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

/** One row for each bucket, one column for each step: the more observations, the stronger the colour. */
function drawHeatmap({ lines }: Filled, plot: Box, span: Span, theme: Theme): string {
  const cumulative = lines
    .map(({ name, series }) => ({ limit: name === '+Inf' ? Infinity : Number(name), values: valuesOf(series, span) }))
    .sort((one, other) => one.limit - other.limit);
  const rows = cumulative.map(({ limit, values }, index) => ({
    limit,
    counts: values.map((value, at) => (value ?? 0) - (cumulative[index - 1]?.values[at] ?? 0)),
  }));
  const most = Math.max(1, ...rows.flatMap(({ counts }) => counts));
  const [rowHeight, width] = [plot.h / rows.length, (plot.w * span.step) / (span.end - span.start)];
  return rows
    .map(({ limit, counts }, index) => {
      const y = plot.y + plot.h - (index + 1) * rowHeight;
      const label = limit === Infinity ? 'more' : `≤ ${toText(limit, 's')}`;
      const cells = counts.slice(1).map((count, at) => {
        if (count < 0.5) return '';
        const opacity = round(0.15 + 0.85 * Math.sqrt(count / most));
        return `<rect x="${round(plot.x + at * width)}" y="${round(y)}" width="${round(width)}" height="${round(rowHeight - 1)}" fill="${theme.heat}" fill-opacity="${opacity}"/>`;
      });
      return (
        `<text x="${plot.x - 8}" y="${round(y + rowHeight / 2 + 4)}" text-anchor="end" font-size="11" fill="${theme.muted}">${label}</text>` +
        `<line x1="${plot.x}" x2="${plot.x + plot.w}" y1="${round(y + rowHeight)}" y2="${round(y + rowHeight)}" stroke="${theme.grid}"/>` +
        cells.join('')
      );
    })
    .join('');
}

function valuesOf({ values }: Series, span: Span): (number | undefined)[] {
  const byStep = new Map(values.map(([time, value]) => [Math.round((time - span.start) / span.step), Number(value)]));
  return stepsOf(span).map((step) => {
    const value = byStep.get(step);
    return value === undefined || Number.isNaN(value) ? undefined : value;
  });
}

function stepsOf({ start, end, step }: Span): number[] {
  return Array.from({ length: Math.floor((end - start) / step) + 1 }, (_, index) => index);
}

/** A round number above `highest`, and the lines from 0 to it. */
function axisTo(highest: number): { top: number; ticks: number[] } {
  const target = Math.max(highest, 1e-3);
  const power = 10 ** Math.floor(Math.log10(target));
  const unit = [0.25, 0.5, 1, 2, 2.5].map((factor) => factor * power).find((each) => 4 * each >= target) ?? 5 * power;
  const count = Math.ceil(target / unit);
  return { top: count * unit, ticks: Array.from({ length: count + 1 }, (_, index) => index * unit) };
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
