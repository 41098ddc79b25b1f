import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { pause, TimerQueue, type ScheduledCall } from '../../src/core/timers.js';
import { blockEventLoop } from '../support/block.js';
import { fakeClock, jumpingClock, noteTimers } from './support.js';

describe('deadlines of one length', () => {
  beforeEach(fakeClock);
  afterEach(() => {
    vi.restoreAllMocks();
    vi.useRealTimers();
  });

  test('deadlines of one length expire each at its own time, in the order they were set', async () => {
    const queue = new TimerQueue(1_000);
    const fallen: string[] = [];
    for (const [name, pauseMs] of Object.entries({ a: 0, b: 0, c: 1, d: 998 })) {
      await vi.advanceTimersByTimeAsync(pauseMs);
      queue.set(() => fallen.push(name));
    }
    expect(fallen).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(fallen).toEqual(['a', 'b']);
    await vi.advanceTimersByTimeAsync(1);
    expect(fallen).toEqual(['a', 'b', 'c']);
    await vi.advanceTimersByTimeAsync(997);
    expect(fallen).toEqual(['a', 'b', 'c']);
    await vi.advanceTimersByTimeAsync(1);
    expect(fallen).toEqual(['a', 'b', 'c', 'd']);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a deadline that is cleared, even twice or when it is over, leaves the others as they are', async () => {
    const queue = new TimerQueue(1_000);
    const fallen: string[] = [];
    const later = (name: string): ScheduledCall => queue.set(() => fallen.push(name));
    const [a, b, , d] = [later('a'), later('b'), later('c'), later('d')];
    for (const each of [b, b, d, d]) queue.clear(each);
    later('e');
    queue.clear(d);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(fallen).toEqual(['a', 'c', 'e']);
    later('f');
    queue.clear(a);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(fallen).toEqual(['a', 'c', 'e', 'f']);
  });

  test('a deadline may be set and cleared while another expires', async () => {
    const queue = new TimerQueue(1_000);
    const fallen: string[] = [];
    queue.set(() => {
      fallen.push('a');
      queue.set(() => fallen.push('again'));
      queue.clear(calledOff);
    });
    const calledOff = queue.set(() => fallen.push('called off'));
    await vi.advanceTimersByTimeAsync(1);
    queue.set(() => fallen.push('b'));
    await vi.advanceTimersByTimeAsync(1_000);
    // The one that was set meanwhile holds up none that was there before.
    expect(fallen).toEqual(['a', 'b']);
    expect(vi.getTimerCount()).toBe(1);
    await vi.advanceTimersByTimeAsync(999);
    expect(fallen).toEqual(['a', 'b', 'again']);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('deadlines that pass while the event loop is blocked are extended once, by their own length', async () => {
    const block = jumpingClock();
    const queue = new TimerQueue(1_000, { extendsOnce: true });
    const fallen: string[] = [];
    queue.set(() => fallen.push('a'));
    const b = queue.set(() => fallen.push('b'));
    await vi.advanceTimersByTimeAsync(500);
    // Its own time passes when the event loop is free again.
    queue.set(() => fallen.push('c'));
    block(51);
    await vi.advanceTimersByTimeAsync(600);
    queue.clear(b);
    queue.set(() => fallen.push('d'));
    expect(fallen).toEqual([]);
    await vi.advanceTimersByTimeAsync(899);
    expect(fallen).toEqual(['c']);
    // Blocked again: `a` has been extended, and `d` has not.
    block(1_000);
    await vi.advanceTimersByTimeAsync(1);
    expect(fallen).toEqual(['c', 'a']);
    // The timer of `d` runs 100 ms after that of `a`.
    await vi.advanceTimersByTimeAsync(1_099);
    expect(fallen).toEqual(['c', 'a']);
    await vi.advanceTimersByTimeAsync(1);
    expect(fallen).toEqual(['c', 'a', 'd']);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('deadlines that pass up to 50 ms late are extended once, by 50 ms', async () => {
    const block = jumpingClock();
    const queue = new TimerQueue(1_000, { extendsOnce: true });
    const fallen: string[] = [];
    queue.set(() => fallen.push('a'));
    const b = queue.set(() => fallen.push('b'));
    await vi.advanceTimersByTimeAsync(20);
    queue.set(() => fallen.push('c'));
    await vi.advanceTimersByTimeAsync(970);
    queue.set(() => fallen.push('d'));
    block(50);
    await vi.advanceTimersByTimeAsync(10 + 49);
    expect(fallen).toEqual([]);
    queue.clear(b);
    await vi.advanceTimersByTimeAsync(1);
    expect(fallen).toEqual(['a', 'c']);
    await vi.advanceTimersByTimeAsync(929);
    expect(fallen).toEqual(['a', 'c']);
    // `d` passes on time, and its extension does not, because the event loop is blocked.
    await vi.advanceTimersByTimeAsync(1);
    block(5_000);
    await vi.advanceTimersByTimeAsync(50);
    expect(fallen).toEqual(['a', 'c', 'd']);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('extended deadlines expire each at its own time', async () => {
    const queue = new TimerQueue(1_000, { extendsOnce: true });
    const fallen: string[] = [];
    queue.set(() => fallen.push('a'));
    await vi.advanceTimersByTimeAsync(20);
    queue.set(() => fallen.push('b'));
    await vi.advanceTimersByTimeAsync(980 + 50);
    expect(fallen).toEqual(['a']);
    await vi.advanceTimersByTimeAsync(19);
    expect(fallen).toEqual(['a']);
    await vi.advanceTimersByTimeAsync(1);
    expect(fallen).toEqual(['a', 'b']);
  });

  test('deadlines of other queues are not extended, whatever they are late', async () => {
    const block = jumpingClock();
    const fallen: string[] = [];
    for (const lateMs of [0, 50, 5_000]) {
      new TimerQueue(1_000).set(() => fallen.push(`${lateMs} ms late`));
      block(lateMs);
      await vi.advanceTimersByTimeAsync(1_000);
    }
    expect(fallen).toEqual(['0 ms late', '50 ms late', '5000 ms late']);
  });

  test('deadlines of one length share one timer', () => {
    const queue = new TimerQueue(1_000);
    for (let turn = 0; turn < 100; turn += 1) queue.clear(queue.set(() => undefined));
    queue.set(() => undefined);
    expect(vi.getTimerCount()).toBe(1);
  });
});

/** Counts the timers that keep the process alive. */
const liveTimers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;

test('deadlines keep the process alive exactly while there are any', () => {
  const others = liveTimers();
  const queue = new TimerQueue(60_000);
  for (let time = 0; time < 2; time += 1) {
    const a = queue.set(() => undefined);
    expect(liveTimers()).toBe(others + 1);
    const b = queue.set(() => undefined);
    expect(liveTimers()).toBe(others + 1);
    queue.clear(a);
    expect(liveTimers()).toBe(others + 1);
    queue.clear(b);
    expect(liveTimers()).toBe(others);
  }
});

test('an extended deadline keeps the process alive until it is cleared', async () => {
  const queue = new TimerQueue(1_000, { extendsOnce: true });
  const first = queue.set(() => undefined);
  blockEventLoop(1_100);
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  const before = liveTimers();
  queue.clear(first);
  expect(liveTimers()).toBe(before - 1);
  const second = queue.set(() => undefined);
  expect(liveTimers()).toBe(before);
  queue.clear(second);
  expect(liveTimers()).toBe(before - 1);
});

test('deadlines with keepAlive: false never keep the process alive', () => {
  const others = liveTimers();
  const queue = new TimerQueue(60_000, { keepAlive: false });
  const first = queue.set(() => undefined);
  expect(liveTimers()).toBe(others);
  queue.clear(first);
  queue.set(() => undefined);
  expect(liveTimers()).toBe(others);
});

test('a pause keeps the process alive, unless keepAlive is false', async () => {
  const keptAlive = noteTimers();
  const pauses = [pause(11), pause(12, {}), pause(13, { keepAlive: true }), pause(14, { keepAlive: false })];
  expect([11, 12, 13, 14].flatMap(keptAlive)).toEqual([true, true, true, false]);
  await Promise.all(pauses);
});
