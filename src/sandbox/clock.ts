import { invalidOption, maxTimerMs, wholeNumber } from '../core/errors.js';

/** Sandbox time, and what is to happen in it. Times are milliseconds of Unix time, as `data.timestamp` shows them. */
export interface SandboxClock {
  nowMs(): number;
  /** Runs `work` when sandbox time has reached `dueMs`; what is due together runs in the order it was asked for. */
  at(dueMs: number, work: () => Promise<void>): void;
  /** Counts `work` that was not begun by the clock as under way, for `idle()`. */
  readonly track: <T>(work: Promise<T>) => Promise<T>;
  readonly advance: (ms: number) => Promise<void>;
  readonly idle: () => Promise<void>;
  /** Forgets everything due; resolves when what is under way has ended. */
  stop(): Promise<void>;
}

interface Due {
  readonly dueMs: number;
  readonly work: () => Promise<void>;
}

/** When a manual clock starts: a run that is repeated gives the same timestamps. */
export const manualStartMs = Date.parse('2026-01-15T10:30:00.000Z');

/** Sandbox time starts at real time and runs `speed` times as fast. */
export function scaledClock(speed: number): SandboxClock {
  const startMs = Date.now();
  const startedAt = performance.now();
  const agenda = dueInOrder();
  const busy = underWay();
  let timer: NodeJS.Timeout | undefined;

  const nowMs = (): number => startMs + Math.round((performance.now() - startedAt) * speed);

  function wind(): void {
    clearTimeout(timer);
    const next = agenda.nextMs();
    if (next === undefined) return;
    // A delay longer than a timer can keep would fire at once.
    const delayMs = Math.min(maxTimerMs, Math.max(0, Math.ceil((next - nowMs()) / speed)));
    timer = setTimeout(runDue, delayMs);
  }
  function runDue(): void {
    for (let due = agenda.take(nowMs()); due !== undefined; due = agenda.take(nowMs())) void busy.track(due.work());
    wind();
  }

  return {
    nowMs,
    at(dueMs, work) {
      agenda.add({ dueMs, work });
      wind();
    },
    track: busy.track,
    advance: () => Promise.reject(invalidOption('clock', '"manual" for `advance`', undefined)),
    idle: () => busy.until(() => agenda.nextMs() === undefined),
    async stop() {
      agenda.end();
      clearTimeout(timer);
      busy.wake();
      await busy.until(() => true);
    },
  };
}

/** Sandbox time stands still until it is advanced; then everything due happens in order, one after the other. */
export function manualClock(): SandboxClock {
  const agenda = dueInOrder();
  const busy = underWay();
  let now = manualStartMs;
  let advanced = Promise.resolve();

  async function advanceTo(ms: number): Promise<void> {
    const targetMs = now + ms;
    for (let due = agenda.take(targetMs); due !== undefined; due = agenda.take(targetMs)) {
      now = Math.max(now, due.dueMs);
      await busy.track(due.work());
    }
    now = targetMs;
  }

  return {
    nowMs: () => now,
    at(dueMs, work) {
      agenda.add({ dueMs, work });
    },
    track: busy.track,
    async advance(ms) {
      wholeNumber('ms', ms, 0);
      // Two at once would each move the time under the other's feet.
      advanced = advanced.then(() => advanceTo(ms));
      await advanced;
    },
    idle: () => busy.until(() => true),
    async stop() {
      agenda.end();
      await busy.until(() => true);
    },
  };
}

function dueInOrder() {
  const list: Due[] = [];
  let open = true;
  return {
    add(due: Due): void {
      if (!open) return; // A timer set after the end would keep the process alive.
      const after = list.findIndex((each) => each.dueMs > due.dueMs);
      list.splice(after === -1 ? list.length : after, 0, due);
    },
    nextMs: (): number | undefined => list[0]?.dueMs,
    take: (upToMs: number): Due | undefined => (list[0] && list[0].dueMs <= upToMs ? list.shift() : undefined),
    end(): void {
      open = false;
      list.length = 0;
    },
  };
}

/** Counts the work under way, and tells when there is none. */
function underWay() {
  let count = 0;
  let waiting: (() => void)[] = [];

  /** Makes those who wait look again. */
  function wake(): void {
    const woken = waiting;
    waiting = [];
    for (const resume of woken) resume();
  }
  async function track<T>(work: Promise<T>): Promise<T> {
    count += 1;
    try {
      return await work;
    } finally {
      count -= 1;
      wake();
    }
  }
  async function until(quiet: () => boolean): Promise<void> {
    while (count > 0 || !quiet()) {
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
      });
    }
  }
  return { track, until, wake };
}
