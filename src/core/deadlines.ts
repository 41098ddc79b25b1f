import { TransferCallbackError } from './errors.js';

/** Something to be done when its time has come, unless it is called off. */
export interface Deadline {
  readonly dueAt: number;
  readonly onDue: () => void;
  before: Deadline;
  after: Deadline;
}

export interface Deadlines {
  /** Calls `onDue` after `ms`, which must not throw. */
  readonly set: (onDue: () => void) => Deadline;
  /** Calls the deadline off, if it is not over. */
  readonly clear: (deadline: Deadline) => void;
}

/**
 * Deadlines of one length. They fall due in the order they are set in, so that one timer serves them all: with timers
 * of its own for each delivery Node spent as long on these as the receiver on everything else but the schema. With
 * `keepAlive: false` a process that has nothing else to do may end before they are due.
 */
export function deadlines(ms: number, { keepAlive = true } = {}): Deadlines {
  /** Where the ring of them begins and ends. */
  const ring = { dueAt: Infinity, onDue: () => undefined } as unknown as Deadline;
  ring.before = ring.after = ring;
  /** Runs on when nothing is left to be due: the next deadline needs it soon enough. */
  let timer: NodeJS.Timeout | undefined;

  function wind(afterMs: number): NodeJS.Timeout {
    const wound = setTimeout(fallDue, afterMs);
    return keepAlive ? wound : wound.unref();
  }

  function fallDue(): void {
    const now = performance.now();
    for (let first = ring.after; first.dueAt <= now; first = ring.after) {
      clear(first);
      first.onDue();
    }
    timer = ring.after === ring ? undefined : wind(Math.ceil(ring.after.dueAt - now));
  }

  function set(onDue: () => void): Deadline {
    if (timer === undefined) timer = wind(ms);
    else if (keepAlive && ring.after === ring) timer.ref();
    const deadline = { dueAt: performance.now() + ms, onDue, before: ring.before, after: ring };
    ring.before = ring.before.after = deadline;
    return deadline;
  }

  function clear(deadline: Deadline): void {
    deadline.before.after = deadline.after;
    deadline.after.before = deadline.before;
    // Called off again, it leaves its old neighbours alone.
    deadline.before = deadline.after = deadline;
    if (ring.after === ring) timer?.unref();
  }

  return { set, clear };
}

/** Settles as a call of the store does, or rejects with STORE_TIMEOUT when that takes too long; the call goes on. */
export type WithinStoreDeadline = <T>(call: PromiseLike<T>) => Promise<T>;

export function storeDeadline(timeoutMs: number): WithinStoreDeadline {
  const { set, clear } = deadlines(timeoutMs);
  return (call) =>
    new Promise((resolve, reject) => {
      const deadline = set(() => {
        reject(new TransferCallbackError('STORE_TIMEOUT', `The store did not answer within ${timeoutMs} ms.`));
      });
      const inTime = (): void => {
        clear(deadline);
      };
      call.then(resolve, reject);
      call.then(inTime, inTime);
    });
}
