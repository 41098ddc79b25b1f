// A panel of the dashboard, with what it shows, and its measures in a picture.
import type { Series } from './prometheus.js';

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

/** A rectangle of the picture. */
export interface Box {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

/** The value at each step of the span; `undefined` where there is none. */
export function valuesOf({ values }: Series, span: Span): (number | undefined)[] {
  const byStep = new Map(values.map(([time, value]) => [Math.round((time - span.start) / span.step), Number(value)]));
  return stepsOf(span).map((step) => {
    const value = byStep.get(step);
    return value === undefined || Number.isNaN(value) ? undefined : value;
  });
}

export function stepsOf({ start, end, step }: Span): number[] {
  return Array.from({ length: Math.floor((end - start) / step) + 1 }, (_, index) => index);
}

/** Rounds to a tenth of a pixel. */
export function round(value: number): number {
  return Math.round(value * 10) / 10;
}
