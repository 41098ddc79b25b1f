// What a callback route should stand. Each situation resolves with whether it did (`holds`) and what was seen.
import { setTimeout as pause } from 'node:timers/promises';
import { callbackText } from '../callback.mjs';

/** When the service sends a callback again for the first time. Its patience is not documented: a later response is none. */
export const firstRetryMs = 30_000;
/** How long a handler may take to begin, on a busy machine. */
export const patienceMs = 20_000;
/** For how long a handler runs on after a copy was sent: long enough for a response on a busy machine. */
const holdMs = 5_000;
/** For how long another process tries to take over from one that is frozen. */
const takeOverMs = 45_000;

/** A callback as the service sends it, with an id that was never sent before. */
const newCallback = () => JSON.parse(callbackText(crypto.randomUUID()));
const acknowledged = (status) => status >= 200 && status < 300;
const said = (status) => (status === undefined ? `no response in ${firstRetryMs / 1_000} s` : String(status));

async function failureThenRetry({ first, second }) {
  const callback = newCallback();
  first.expect(callback, 'fail');
  const status = await first.deliver(callback);
  if (acknowledged(status)) return { holds: false, seen: 'the failure is acknowledged' };
  const again = await second.deliver(callback);
  const runs = second.runs(callback.data.id);
  if (runs === 0) return { holds: false, seen: `the retry: ${said(again)}, not handled` };
  return { holds: acknowledged(again), seen: `the retry: ${said(again)}, handled` };
}

async function writeThenFailure({ first, second, countWrites }) {
  const callback = newCallback();
  first.expect(callback, 'fail');
  await first.deliver(callback);
  const again = await second.deliver(callback);
  if (second.runs(callback.data.id) === 0) return { holds: false, seen: `the retry: ${said(again)}, not handled` };
  const writes = await countWrites(callback);
  return { holds: writes === 1, seen: writes === 2 ? 'written twice' : `written ${writes} times` };
}

async function copyMeanwhile({ first, second }) {
  const callback = newCallback();
  const { status: held } = await first.deliverAndHold(callback);
  const copy = second.deliver(callback);
  const early = await Promise.race([copy, pause(holdMs, 'waits')]);
  const ranTwice = second.runs(callback.data.id) > 0;
  first.tell(callback.data.id, 'succeed');
  await Promise.all([held, copy]);
  if (ranTwice) return { holds: false, seen: 'handled twice' };
  if (acknowledged(early)) return { holds: false, seen: 'acknowledged before the handler has succeeded' };
  const status = await copy;
  return { holds: true, seen: acknowledged(status) ? `waits, then ${said(status)}` : said(status) };
}

async function otherFacts({ first, second }) {
  const callback = newCallback();
  await first.deliver(callback);
  const changed = { ...callback, data: { ...callback.data, amount: callback.data.amount + 1 } };
  const status = await second.deliver(changed);
  if (second.runs(callback.data.id) > 0) return { holds: false, seen: 'handled twice' };
  return { holds: !acknowledged(status), seen: acknowledged(status) ? 'acknowledged' : said(status) };
}

async function killedInHandler({ victim, second }) {
  const callback = newCallback();
  const { status: lost } = await victim.deliverAndHold(callback);
  const sentAt = performance.now();
  await victim.kill();
  await lost;
  await pause(firstRetryMs - (performance.now() - sentAt));
  const status = await second.deliver(callback);
  const handled = second.runs(callback.data.id) === 1;
  if (handled) return { holds: acknowledged(status), seen: `handled again: ${said(status)}` };
  return {
    holds: false,
    seen: acknowledged(status) ? 'acknowledged, never handled' : `the first retry: ${said(status)}`,
  };
}

async function lateFailure({ first, second }) {
  const callback = newCallback();
  const { id } = callback.data;
  const { status: late } = await first.deliverAndHold(callback);
  first.signal('SIGSTOP');
  const giveUpAt = performance.now() + takeOverMs;
  let status;
  while (second.runs(id) === 0 && !acknowledged(status) && performance.now() < giveUpAt) {
    status = await second.deliver(callback, 5_000);
    await pause(500);
  }
  const tookOver = second.runs(id) > 0;
  first.tell(id, 'fail');
  first.signal('SIGCONT');
  await late;
  if (!tookOver) {
    if (acknowledged(status)) return { holds: false, seen: 'acknowledged, then failed: lost' };
    return { holds: undefined, seen: 'nobody takes over from a frozen process' };
  }
  const again = await second.deliver(callback);
  if (second.runs(id) > 1) return { holds: false, seen: 'the success is erased: handled twice' };
  return { holds: acknowledged(again), seen: `the next copy: ${said(again)}` };
}

/** What each route is put through, with the sentence of the results about it. Those that are `slow` wait for the first retry. */
export const situations = [
  {
    title: 'failure, then retry',
    text: 'a handler that throws is not acknowledged, and the next delivery is handled.',
    run: failureThenRetry,
  },
  {
    title: 'write, then failure',
    text: 'a handler that is not idempotent writes and then throws. After the next delivery its write is there once.',
    run: writeThenFailure,
  },
  {
    title: 'copy meanwhile',
    text: 'a copy that comes while the handler runs is not acknowledged before the handler has succeeded.',
    run: copyMeanwhile,
  },
  {
    title: 'same id, other facts',
    text: 'a delivery whose amount differs from the one that was handled is not acknowledged.',
    run: otherFacts,
  },
  {
    title: 'killed in the handler',
    text: 'the process dies, and the first retry, 30 s later, is handled by another one.',
    slow: true,
    run: killedInHandler,
  },
  {
    title: 'late failure',
    text: 'a process is frozen beyond its lease, another one succeeds, and the first one then fails. The success is kept.',
    slow: true,
    run: lateFailure,
  },
];
