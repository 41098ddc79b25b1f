import type { ServerResponse } from 'node:http';
import type { SandboxClock } from './clock.js';
import type { Transfer } from './transfer.js';

/** What the events `state` and `clock` of the stream show of sandbox time. */
export interface ClockState {
  /** In milliseconds of Unix time, like `nextMs`. */
  readonly nowMs: number;
  /** How many times as fast as real time it runs; 0 for a manual clock. */
  readonly speed: number;
  /** When anything is due next: an outcome, or an attempt. */
  readonly nextMs: number | undefined;
}

/** Each open page holds a connection. */
const maxReaders = 20;
/** A reader that is further behind has stopped reading: what is written for it would fill the memory. */
const maxBehindBytes = 1_048_576;
/** So that a proxy does not take the stream for dead. */
const commentMs = 15_000;

/** Sends every change of the transfers to the readers of the console, as server-sent events. */
export class ConsoleStream {
  readonly #clock: SandboxClock;
  readonly #commentMs: number;
  /** How many bytes may wait for each reader. */
  readonly #limits = new Map<ServerResponse, number>();
  readonly #changed = new Set<Transfer>();
  #flushing: NodeJS.Immediate | undefined;
  #comments: NodeJS.Timeout | undefined;

  constructor(clock: SandboxClock, options: { commentMs?: number } = {}) {
    this.#clock = clock;
    this.#commentMs = options.commentMs ?? commentMs;
  }

  get isFull(): boolean {
    return this.#limits.size >= maxReaders;
  }

  clockState(): ClockState {
    const { speed, nextMs } = this.#clock;
    return { nowMs: this.#clock.nowMs(), speed, nextMs };
  }

  /** Begins a stream with the whole state. A reader that reconnects gets it again, so it needs no Last-Event-ID. */
  add(response: ServerResponse, state: object): void {
    const text = `retry: 1000\n${toMessage('state', { ...state, clock: this.clockState() })}`;
    // The state may be longer than the limit, and is under way when the first change comes.
    this.#limits.set(response, Buffer.byteLength(text) + maxBehindBytes);
    response.on('close', () => {
      this.#remove(response);
    });
    response.write(text);
    this.#comments ??= setInterval(() => {
      this.#send(':\n\n');
    }, this.#commentMs).unref();
  }

  /** Publishes changes, gathered per turn of the event loop: a burst of ten attempts is one message. */
  publish(transfer?: Transfer): void {
    // Without a reader a sandbox under load does no work here.
    if (this.#limits.size === 0) return;
    if (transfer !== undefined) this.#changed.add(transfer);
    this.#flushing ??= setImmediate(() => {
      this.#flush();
    });
  }

  #flush(): void {
    this.#flushing = undefined;
    const messages = [...this.#changed].map((transfer) => toMessage('transfer', transfer.toPublic()));
    this.#changed.clear();
    this.#send(messages.join('') + toMessage('clock', this.clockState()));
  }

  #send(text: string): void {
    for (const [response, limitBytes] of this.#limits) {
      if (response.writableLength > limitBytes) response.destroy();
      else response.write(text);
    }
  }

  #remove(response: ServerResponse): void {
    this.#limits.delete(response);
    if (this.#limits.size > 0) return;
    clearInterval(this.#comments);
    this.#comments = undefined;
  }
}

function toMessage(event: string, data: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
