import type { ServerResponse } from 'node:http';
import type { SandboxAttempt } from './series.js';
import type { SandboxClock } from './clock.js';
import { nameAttempt, tellAttempts, toCallbackState, type CallbackState } from './callback-state.js';
import type { SandboxEvent, SandboxTransfer, TransferHistory } from './history.js';
import { toShownEvent, type Row, type ShownEvent, type View, type PageQuery } from './view.js';

/** What the messages of the stream show of sandbox time. */
export interface ClockState {
  /** In milliseconds of Unix time, like `nextMs`. */
  readonly nowMs: number;
  /** How many times as fast as real time it runs; 0 while it stands still. */
  readonly speed: number;
  /** Whether the speed cannot be changed. */
  readonly isManual: boolean;
  /** When anything is due next: an outcome, or an attempt. */
  readonly nextMs: number | undefined;
}

/** A message of the stream: what has changed since the last one to the same page. The first one has everything. */
export interface Message<Settings = unknown> {
  /** In the first message only. */
  readonly settings?: Settings;
  readonly clock: ClockState;
  readonly total: number;
  readonly matching: number;
  /** Rows that are new or have changed. */
  readonly rows: readonly Row[];
  /** The ids of rows that have left the list. */
  readonly gone: readonly string[];
  /** The transfer that is shown, if it has changed, with its events from an index on; `null` if there is none. */
  readonly shown?: Shown | null;
  /** A sentence on the attempts that have ended. */
  readonly said?: string | undefined;
}

/** What the page shows of one transfer. */
type Head = Omit<SandboxTransfer, 'events'>;
type Shown = Head & {
  /** Such as `FAILED, then SUCCESS`. */
  readonly stateInWords: string;
  /** What the attempt that is planned next is called. */
  readonly nextName: string | undefined;
  readonly callbackState: CallbackState;
  readonly from: number;
  readonly events: readonly ShownEvent[];
};

/** Each open page holds a connection. */
const maxReaders = 20;
/** Changes are gathered for as long: under load, a message for each would keep the page busy. */
const gatherMs = 50;
/** A screen reader reads each sentence aloud: without a pause a burst is one long noise. */
const betweenSentencesMs = 1_000;
/** A proxy closes a stream that is silent for longer. */
const commentMs = 15_000;

/** Sends every change of the transfers to the readers of the console, as server-sent events. */
export class ConsoleStream {
  readonly #clock: SandboxClock;
  readonly #look: (query: PageQuery) => View;
  readonly #readers = new Set<Reader>();
  #untold: SandboxAttempt[] = [];
  #toldAtMs = -Infinity;
  #flushing: NodeJS.Timeout | undefined;
  #comments: NodeJS.Timeout | undefined;

  constructor(clock: SandboxClock, look: (query: PageQuery) => View) {
    this.#clock = clock;
    this.#look = look;
  }

  get isFull(): boolean {
    return this.#readers.size >= maxReaders;
  }

  /**
   * Begins a stream with all that the page asks for. A page that reconnects gets it again, so it needs no
   * Last-Event-ID.
   */
  add(response: ServerResponse, query: PageQuery, settings: object): void {
    const reader = new Reader(response, query);
    this.#readers.add(reader);
    response.on('close', () => {
      this.#remove(reader);
    });
    // A reader that was behind has caught up, and has missed changes.
    response.on('drain', () => {
      this.publish();
    });
    response.write('retry: 1000\n');
    reader.send({ settings, ...this.#parts() }, this.#look(query));
    this.#comments ??= setInterval(() => {
      for (const { response: each } of this.#readers) each.write(':\n\n');
    }, commentMs).unref();
  }

  /** Publishes that something has changed and, if given, an attempt that has ended. */
  publish(attempt?: SandboxAttempt): void {
    // Without a reader a sandbox under load does no work here.
    if (this.#readers.size === 0) return;
    if (attempt !== undefined) this.#untold.push(attempt);
    this.#flushing ??= setTimeout(() => {
      this.#flush();
    }, gatherMs).unref();
  }

  #flush(): void {
    this.#flushing = undefined;
    const parts = { ...this.#parts(), said: this.#takeSentence() };
    for (const reader of this.#readers) if (!reader.isBehind) reader.send(parts, this.#look(reader.query));
    if (this.#untold.length > 0) this.publish();
  }

  #parts() {
    const { speed, isManual, nextMs } = this.#clock;
    return { clock: { nowMs: this.#clock.nowMs(), speed, isManual, nextMs } };
  }

  #takeSentence(): string | undefined {
    if (this.#untold.length === 0 || performance.now() < this.#toldAtMs + betweenSentencesMs) return undefined;
    this.#toldAtMs = performance.now();
    return tellAttempts(this.#untold.splice(0));
  }

  #remove(reader: Reader): void {
    this.#readers.delete(reader);
    if (this.#readers.size > 0) return;
    clearInterval(this.#comments);
    this.#comments = undefined;
    this.#untold = [];
  }
}

/** A page, and what it has been sent. */
class Reader {
  readonly response: ServerResponse;
  readonly query: PageQuery;
  /** The JSON of each row, by id. */
  #rows: ReadonlyMap<string, string> = new Map();
  #shownText: string | undefined;
  #shownId = '';
  #events: readonly SandboxEvent[] = [];

  constructor(response: ServerResponse, query: PageQuery) {
    this.response = response;
    this.query = query;
  }

  /** Whether the page reads slowly, or has stopped: further messages would fill the memory. */
  get isBehind(): boolean {
    return this.response.writableNeedDrain;
  }

  send(parts: Pick<Message, 'clock' | 'settings' | 'said'>, { total, matching, rows, shown }: View): void {
    const sent = this.#rows;
    this.#rows = new Map(rows.map((row) => [row.id, JSON.stringify(row)]));
    const message: Message = {
      ...parts,
      total,
      matching,
      rows: rows.filter(({ id }) => this.#rows.get(id) !== sent.get(id)),
      gone: [...sent.keys()].filter((id) => !this.#rows.has(id)),
      ...this.#showChange(shown),
    };
    this.response.write(`data: ${JSON.stringify(message)}\n\n`);
  }

  #showChange(transfer: TransferHistory | undefined): Pick<Message, 'shown'> {
    const { events = [], ...head } = transfer?.toPublic() ?? {};
    const known = transfer?.facts.id === this.#shownId ? this.#events : [];
    // Compared one by one: a query that is repeated replaces the last event.
    const changed = events.findIndex((event, index) => event !== known[index]);
    const from = changed === -1 ? events.length : changed;
    const text = JSON.stringify(head);
    if (text === this.#shownText && from === events.length) return {};
    this.#shownText = text;
    this.#shownId = transfer?.facts.id ?? '';
    this.#events = events;
    if (transfer === undefined) return { shown: null };
    const callbackState = toCallbackState(transfer);
    const changedEvents = events.slice(from).map((event) => toShownEvent(event, transfer));
    const { stateInWords, next } = transfer;
    const nextName = next && nameAttempt(next, transfer);
    return { shown: { ...(head as Head), stateInWords, nextName, callbackState, from, events: changedEvents } };
  }
}
