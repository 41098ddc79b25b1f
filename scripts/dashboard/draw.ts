// Draws the dashboard as SVG from the values of its own queries.
import { drawLines } from './lines.js';
import { round, valuesOf, type Box, type Filled, type Span } from './panel.js';
import { escapeText, toText, type Theme } from './theme.js';

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
