// Colours and numbers of the picture.

/** The colours of a picture. `named` are Grafana's names, as the dashboard uses them. */
export interface Theme {
  readonly page: string;
  readonly panel: string;
  readonly border: string;
  readonly text: string;
  readonly muted: string;
  readonly grid: string;
  readonly heat: string;
  readonly named: Readonly<Record<string, string>>;
  /** For series without a colour of their own, in their order. */
  readonly palette: readonly string[];
}

export const themes: Readonly<Record<'light' | 'dark', Theme>> = {
  light: {
    page: '#f4f5f7',
    panel: '#ffffff',
    border: '#dfe3e8',
    text: '#1f2328',
    muted: '#6a737d',
    grid: '#eceff2',
    heat: '#1a7f37',
    palette: ['#8fb8e8', '#3f83d1', '#144f92'],
    named: {
      green: '#2da44e',
      'light-green': '#93d3a2',
      yellow: '#e3c34a',
      'light-yellow': '#f0df8f',
      'dark-yellow': '#b08800',
      orange: '#f08c2e',
      'light-orange': '#f7bd83',
      'semi-dark-orange': '#d9742a',
      'dark-orange': '#bc5a12',
      red: '#cf222e',
      blue: '#4c8dd6',
      purple: '#8250df',
    },
  },
  dark: {
    page: '#0d1117',
    panel: '#161b22',
    border: '#2b323b',
    text: '#e6edf3',
    muted: '#8b949e',
    grid: '#232a33',
    heat: '#3fb950',
    palette: ['#1f4e82', '#3f83d1', '#9cc7f5'],
    named: {
      green: '#3fb950',
      'light-green': '#23693a',
      yellow: '#d9b93b',
      'light-yellow': '#8f8132',
      'dark-yellow': '#a17c0c',
      orange: '#ee8a33',
      'light-orange': '#96602e',
      'semi-dark-orange': '#c96a24',
      'dark-orange': '#a84f12',
      red: '#f85149',
      blue: '#58a6ff',
      purple: '#a371f7',
    },
  },
};

/** A value as Grafana would show it, with the units that the dashboard uses. */
export function toText(value: number, unit: string, decimals?: number): string {
  if (unit === 'percentunit') return `${(100 * value).toFixed(decimals ?? 1)}%`;
  if (unit !== 's') return decimals === undefined ? String(Number(value.toPrecision(3))) : value.toFixed(decimals);
  if (value === 0) return '0 s';
  if (value < 1 && decimals === undefined) return `${Math.round(1_000 * value)} ms`;
  if (value < 120) return `${decimals === undefined ? Number(value.toPrecision(3)) : value.toFixed(decimals)} s`;
  if (value < 3_600) return `${Math.round(value / 60)} min`;
  return `${Math.round(value / 3_600)} h`;
}

export function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
