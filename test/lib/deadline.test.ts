import { getEventListeners } from 'node:events';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  deadlineSignal,
  pause,
  setBackgroundTimer,
  setDeadline,
  waitForSockets,
  withDeadline,
} from '../../src/lib/deadline.js';
import { blockEventLoop } from '../support/helpers/runtime.js';
import { fakeClock, noteTimers } from '../core/support.js';

describe('on a clock that is moved by hand', () => {
  beforeEach(fakeClock);

  test.each([
    [1_000, undefined],
    [950, 50],
  ])('a deadline after %i ms with %s ms more is due after 1 000 ms, once', async (ms, moreMs) => {
    const onDue = vi.fn();
    setDeadline(ms, onDue, moreMs);
    await vi.advanceTimersByTimeAsync(999);
    expect(onDue).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(onDue).toHaveBeenCalledOnce();
    expect(vi.getTimerCount()).toBe(0);
  });

  test.each([0, 1_000, 1_049])('a deadline that is cancelled after %i of its 1 050 ms is not due', async (ms) => {
    const onDue = vi.fn();
    const cancel = setDeadline(1_000, onDue, 50);
    await vi.advanceTimersByTimeAsync(ms);
    cancel();
    expect(vi.getTimerCount()).toBe(0);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(onDue).not.toHaveBeenCalled();
    cancel();
  });

  test('a pause ends when its signal aborts', async () => {
    const controller = new AbortController();
    const ended = vi.fn();
    void pause(1_000, { signal: controller.signal }).then(ended);
    await vi.advanceTimersByTimeAsync(500);
    expect(ended).not.toHaveBeenCalled();
    controller.abort();
    await pause(1_000, controller);
    expect(ended).toHaveBeenCalledOnce();
    expect(vi.getTimerCount()).toBe(0);
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  });
});

/** Counts the timers that keep the process alive. */
const liveTimers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;

test('a task has a signal until its time is up or the outer signal aborts, and leaves neither a timer nor a listener', async () => {
  const outer = new AbortController();
  const [add, remove] = [vi.spyOn(outer.signal, 'addEventListener'), vi.spyOn(outer.signal, 'removeEventListener')];
  const others = liveTimers();
  const never = (): Promise<never> => new Promise(() => undefined);
  const run = (timeoutMs: number, task: () => unknown) => withDeadline(deadlineSignal(timeoutMs, outer.signal), task);
  expect(await run(60_000, () => 'done')).toBe('done');
  await expect(run(1, never)).rejects.toMatchObject({ name: 'TimeoutError', message: 'No response within 1 ms.' });
  const aborted = run(60_000, never);
  outer.abort('the reason');
  await expect(aborted).rejects.toBe('the reason');
  await expect(run(60_000, never)).rejects.toBe('the reason');
  // A timer of the runner may have ended meanwhile.
  expect(liveTimers()).toBeLessThanOrEqual(others);
  expect(remove.mock.calls).toEqual(add.mock.calls.map(([type, listener]) => [type, listener]));
});

const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

test('a socket that has failed has two turns of the event loop to end', async () => {
  const turns: string[] = [];
  setImmediate(() => {
    turns.push('first');
    setImmediate(() => {
      turns.push('second');
      setImmediate(() => turns.push('third'));
    });
  });
  await waitForSockets();
  expect(turns).toEqual(['first', 'second']);
});

test('a deadline that has passed while the event loop was blocked leaves a turn to read what has arrived', async () => {
  const events: string[] = [];
  setDeadline(1, () => events.push('due'));
  const cancel = setDeadline(1, () => events.push('due in spite of the reply'));
  blockEventLoop(20);
  // Node calls what `setImmediate` was given after it has read its sockets.
  setImmediate(() => {
    events.push('reply');
    cancel();
  });
  await nextTurn();
  await nextTurn();
  await vi.waitUntil(() => events.length === 2);
  await nextTurn();
  expect(events).toEqual(['reply', 'due']);
});

test('the time that a deadline has more begins when the event loop is free again', async () => {
  const onDue = vi.fn();
  const startedAt = performance.now();
  setDeadline(10, onDue, 50);
  blockEventLoop(200);
  await vi.waitUntil(() => onDue.mock.calls.length > 0, { interval: 1 });
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(249);
});

// A receiver on such a host: test/hosts/workers.test.ts, once a week.
test('as on the web, a timer may be a number, and there may be no `setImmediate`', async () => {
  const { setTimeout: setNodeTimeout } = globalThis;
  vi.stubGlobal('setTimeout', (call: () => void, ms?: number) => Number(setNodeTimeout(call, ms)));
  vi.stubGlobal('setImmediate', undefined);
  onTestFinished(() => void vi.unstubAllGlobals());
  const due: string[] = [];
  clearTimeout(setBackgroundTimer(() => due.push('a background timer that was cleared'), 1));
  setDeadline(1, () => due.push('a deadline that was cancelled'))();
  setBackgroundTimer(() => due.push('a background timer'), 20);
  setDeadline(60, () => due.push('a deadline'));
  await waitForSockets();
  await vi.waitUntil(() => due.length === 2);
  expect(due).toEqual(['a background timer', 'a deadline']);
});

test('a deadline keeps the process alive until it is cancelled', () => {
  const others = liveTimers();
  const cancel = setDeadline(60_000, () => undefined);
  expect(liveTimers()).toBe(others + 1);
  cancel();
  expect(liveTimers()).toBe(others);
});

test('a pause keeps the process alive, unless keepAlive is false', async () => {
  const keptAlive = noteTimers();
  const pauses = [pause(11), pause(12, {}), pause(13, { keepAlive: true }), pause(14, { keepAlive: false })];
  expect([11, 12, 13, 14].flatMap(keptAlive)).toEqual([true, true, true, false]);
  await Promise.all(pauses);
});
