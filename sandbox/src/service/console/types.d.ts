// The types of the scripts of the page. The compiler alone reads them; they are not shipped.
import type { ConsoleSettings } from '../console-listener.js';
import type * as stream from '../stream.js';
import type { Forged } from '../judgement.js';
import type { Row as ListRow, ShownEvent } from '../view.js';

declare global {
  type Attempt = Extract<ShownEvent, { type: 'attempt' }>['attempt'];
  type Clock = stream.ClockState;
  type Settings = ConsoleSettings;
  type Message = stream.Message<ConsoleSettings>;
  type List = Pick<Message, 'rows' | 'gone' | 'total' | 'matching'>;
  type Row = ListRow;
  type Transfer = NonNullable<Message['shown']>;
  /** `event` is neutral: a point in time. */
  type Tone = 'good' | 'bad' | 'open' | 'none' | 'event';

  /** An item of the timeline. */
  interface Item {
    readonly tone: Tone;
    readonly atMs?: number;
    readonly what: string;
    readonly result?: (Node | string)[];
    readonly more?: Node[];
  }

  /** The facts of a callback that a contradiction changes. */
  interface Facts {
    readonly status?: string;
    readonly amount?: number;
    readonly currency?: string;
    readonly externalId?: string;
  }

  // Types of functions, for those whose parameters would take more than a line.
  type Find = <T extends Element = HTMLElement>(id: string) => T;
  type Make = <K extends keyof HTMLElementTagNameMap>(
    tag: K,
    props?: Readonly<Record<string, unknown>>,
    ...children: (Node | string)[]
  ) => HTMLElementTagNameMap[K];
  type Call = (
    path: string,
    body?: object,
    headers?: Readonly<Record<string, string>>,
  ) => Promise<{ text?: string; data?: { id: string } & Forged; error: string }>;
  type Press = (control: HTMLButtonElement | HTMLSelectElement, path: string, body: object) => Promise<void>;
  type ForTransfer<T> = (transfer: Transfer) => T;
  type ForAttempt<T> = (attempt: Attempt, transfer: Transfer) => T;
}
