// The chart of the README, as SVG. Every bar is a throughput divided by that of the first bar of its panel.
import { L1, powertools, safe, sameRow } from '../sockets.mjs';

export const themes = {
  light: {
    paper: '#ffffff',
    text: '#1f2328',
    muted: '#656d76',
    line: '#d1d9e0',
    bar: '#c8d1da',
    own: '#0969da',
    good: '#1a7f37',
    bad: '#bc4c00',
  },
  dark: {
    paper: '#0d1117',
    text: '#f0f6fc',
    muted: '#9198a1',
    line: '#3d444d',
    bar: '#4b535d',
    own: '#4493f8',
    good: '#3fb950',
    bad: '#db6d28',
  },
};

const onClient = 'node-redis';
/** `ratio` is the one that the bars show; `guarantees` names the row of the table of guarantees. */
const panels = [
  {
    title: 'In memory',
    ratio: 'toL1',
    bars: [
      { name: L1, label: 'Express: an empty route' },
      { name: 'router: memory', label: 'transferCallbackRouter' },
      { name: 'listener: memory', label: 'transferCallbackListener' },
      { name: 'node:http, empty listener', label: 'node:http: empty listener' },
    ],
  },
  {
    title: 'On Redis, with node-redis',
    ratio: 'toByHand',
    bars: [
      {
        name: safe(onClient),
        label: 'by hand: SET NX before, SET after',
        guarantees: 'by hand: SET NX before, SET after',
      },
      { name: `router: ${onClient}`, label: 'transferCallbackRouter', guarantees: 'this package, Redis' },
      { name: `listener: ${onClient}`, label: 'transferCallbackListener', guarantees: 'this package, Redis' },
      { name: powertools, label: 'Powertools idempotency', guarantees: 'powertools' },
      { name: `node-idempotency: ${onClient}`, label: 'node-idempotency', guarantees: 'node-idempotency' },
      { name: `express-idempotency: ${onClient}`, label: 'express-idempotency', guarantees: 'express-idempotency' },
    ],
  },
  {
    title: 'On PostgreSQL, in the transaction of the handler',
    ratio: 'toByHand',
    bars: [
      { name: sameRow, label: 'by hand: the same row', guarantees: 'by hand: PostgreSQL transaction' },
      { name: 'router: Postgres', label: 'transferCallbackRouter', guarantees: 'this package, PostgreSQL' },
      { name: 'listener: Postgres', label: 'transferCallbackListener', guarantees: 'this package, PostgreSQL' },
    ],
  },
];

const width = 860;
const barLeft = 268;
const barRight = 640;
const heldX = 820;
const rowHeight = 26;
const barHeight = 14;
const font = `font-family="system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"`;

export function drawChart({ machine, sockets, guarantees, connections }, theme) {
  const colors = themes[theme];
  const filled = panels.map((panel) => ({ ...panel, bars: measureBars(panel, sockets, guarantees) }));
  const most = Math.max(...filled.flatMap(({ bars }) => bars.map(({ ratio }) => ratio)));
  const toX = (ratio) => barLeft + ((barRight - barLeft) * ratio) / most;
  const parts = [];
  let y = 62;
  for (const panel of filled) {
    parts.push(drawPanel(panel, y, toX, colors));
    y += 30 + panel.bars.length * rowHeight + 22;
  }
  const { node, processor, date } = machine;
  const subtitle = `Throughput at ${connections} connections, divided by the first bar of each group. Longer is faster.`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${y + 16}" width="${width}" height="${y + 16}" role="img" ${font}>
<title>Throughput of transfer-callbacks beside what it replaces</title>
<text x="24" y="32" font-size="13" fill="${colors.muted}">${subtitle}</text>
<text x="${heldX}" y="32" font-size="13" fill="${colors.muted}" text-anchor="end">guarantees</text>
${parts.join('\n')}
<text x="24" y="${y}" font-size="11" fill="${colors.muted}">${escape(`Node ${node}, ${processor}, ${date}. Guarantees: how many of the tested faults a route survives.`)}</text>
</svg>
`;
}

function measureBars({ bars, ratio }, rows, guarantees) {
  return bars.map(({ name, label, guarantees: tested }) => {
    const row = rows.find((each) => each.name === name);
    const cells = guarantees
      .find((each) => each.name === tested)
      // A situation that does not arise is neither survived nor failed.
      ?.cells.filter(({ holds }) => holds !== undefined);
    // The first bar is what the others are divided by.
    return { label, own: row.own, perSecond: row.perSecond, ratio: row[ratio]?.median ?? 1, cells };
  });
}

function drawPanel({ title, bars }, top, toX, colors) {
  const bottom = top + 24 + bars.length * rowHeight;
  const reference = toX(1);
  return `<text x="24" y="${top + 8}" font-size="15" font-weight="600" fill="${colors.text}">${escape(title)}</text>
<line x1="${reference}" y1="${top + 20}" x2="${reference}" y2="${bottom}" stroke="${colors.text}" stroke-opacity="0.45" stroke-dasharray="2 3"/>
${bars.map((bar, i) => drawBar(bar, top + 24 + i * rowHeight, toX, colors)).join('\n')}`;
}

function drawBar({ label, own, perSecond, ratio, cells }, y, toX, colors) {
  const middle = y + rowHeight / 2;
  const end = toX(ratio);
  const held = cells?.filter(({ holds }) => holds === true).length;
  const shownCount =
    cells === undefined
      ? ''
      : `<text x="${heldX}" y="${middle + 4}" font-size="13" text-anchor="end" fill="${held === cells.length ? colors.good : colors.bad}">${held} of ${cells.length}</text>`;
  return `<text x="${barLeft - 12}" y="${middle + 4}" font-size="13" text-anchor="end" fill="${colors.text}"${own ? ' font-weight="600"' : ''}>${escape(label)}</text>
<rect x="${barLeft}" y="${middle - barHeight / 2}" width="${(end - barLeft).toFixed(1)}" height="${barHeight}" rx="3" fill="${own ? colors.own : colors.bar}"/>
<text x="${(end + 8).toFixed(1)}" y="${middle + 4}" font-size="13" fill="${colors.text}" stroke="${colors.paper}" stroke-width="4" paint-order="stroke"><tspan font-weight="600">${ratio.toFixed(2)}</tspan><tspan fill="${colors.muted}" font-size="11" dx="6">${Math.round(perSecond).toLocaleString('en')} per s</tspan></text>
${shownCount}`;
}

function escape(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
