// What the pictures are drawn with: SVG, in the colours of a theme.

/** The colours of a picture. */
export interface Theme {
  readonly text: string;
  readonly muted: string;
  readonly line: string;
  readonly shade: string;
  readonly runs: string;
  readonly lease: string;
  readonly waits: string;
  readonly fails: string;
}

export const themes: Readonly<Record<'light' | 'dark', Theme>> = {
  light: {
    text: '#1f2328',
    muted: '#59636e',
    line: '#c8d1da',
    shade: '#eef2f6',
    runs: '#1a7f37',
    lease: '#bf8700',
    waits: '#0969da',
    fails: '#cf222e',
  },
  dark: {
    text: '#e6edf3',
    muted: '#9198a1',
    line: '#3d444d',
    shade: '#1c222b',
    runs: '#3fb950',
    lease: '#d29922',
    waits: '#4493f8',
    fails: '#f85149',
  },
};

/** Draws with the colours of a theme. */
export function pen(theme: Theme) {
  const text = (
    x: number,
    y: number,
    content: string,
    options: { anchor?: string; fill?: string; size?: number; bold?: true } = {},
  ): string => {
    const { anchor = 'start', fill = theme.text, size = 13, bold } = options;
    const weight = bold ? ' font-weight="600"' : '';
    return `<text x="${x}" y="${y}" text-anchor="${anchor}" fill="${fill}" font-size="${size}"${weight}>${content}</text>`;
  };
  return {
    text,
    line: (x1: number, y1: number, x2: number, y2: number, stroke: string, more = ''): string =>
      `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" stroke="${stroke}"${more && ` ${more}`}/>`,
    /** A stretch of time: `solid`, or `open` for one in which nothing runs. */
    bar: (from: number, to: number, y: number, colour: string, style: 'solid' | 'open'): string =>
      style === 'solid'
        ? `<rect x="${from}" y="${y - 8}" width="${to - from}" height="16" rx="3" fill="${colour}"/>`
        : `<rect x="${from}" y="${y - 7.25}" width="${to - from}" height="14.5" rx="3" fill="${colour}" fill-opacity="0.14" stroke="${colour}" stroke-width="1.5" stroke-dasharray="5 4"/>`,
    /** A response: its status, in a pill that begins at `x`. */
    pill: (x: number, y: number, status: string, colour: string): string =>
      `<rect x="${x}" y="${y - 10}" width="38" height="20" rx="10" fill="${theme.shade}" stroke="${colour}" stroke-width="1.5"/>` +
      text(x + 19, y + 4.5, status, { anchor: 'middle', fill: colour, size: 12, bold: true }),
    cross: (x: number, y: number, colour: string): string =>
      `<path d="M${x - 6} ${y - 6}l12 12m0 -12l-12 12" stroke="${colour}" stroke-width="2.5" stroke-linecap="round"/>`,
  };
}
