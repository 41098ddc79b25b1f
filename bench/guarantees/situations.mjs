// What a callback route should stand. Each situation resolves with whether it did (`holds`) and what was seen.
import { setTimeout as pause } from 'node:timers/promises';
import { firstRetryMs, newCallback } from './app.mjs';

/** For how long a handler runs on after a copy was sent: long enough for a response on a busy machine. */
const holdMs = 5_000;
/** For how long another process tries to take over from one that is frozen. */
const takeOverMs = 45_000;

const acknowledged = (status) => status >= 200 && status < 300;
const said = (status) => (status === undefined ? `no response in ${firstRetryMs / 1_000} s` : String(status));

async function copyAfterSuccess({ first, second }) {
  const callback = newCallback();
  const status = await first.deliver(callback);
  if (status !== 200) return { holds: false, seen: `the first delivery: ${said(status)}` };
  const again = await second.deliver(callback);
  if (second.runs(callback.data.id) > 0) return { holds: false, seen: 'handled twice' };
  return { holds: acknowledged(again), seen: `the copy: ${said(again)}` };
}

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

async function copiesAtOnce({ first, second }) {
  const callbacks = Array.from({ length: 100 }, () => newCallback());
  await Promise.all(callbacks.flatMap((callback) => [first.deliver(callback), second.deliver(callback)]));
  const twice = callbacks.filter(({ data }) => first.runs(data.id) + second.runs(data.id) > 1).length;
  const never = callbacks.filter(({ data }) => first.runs(data.id) + second.runs(data.id) === 0).length;
  const seen = [twice > 0 && `${twice} of 100 handled twice`, never > 0 && `${never} of 100 not handled`];
  return { holds: twice === 0 && never === 0, seen: seen.filter(Boolean).join(', ') };
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

async function storeDown({ second, stopStore }) {
  await stopStore();
  const callback = newCallback();
  const status = await second.deliver(callback);
  const ran = second.runs(callback.data.id) > 0;
  if (ran) return { holds: false, seen: `handled unrecorded: ${said(status)}` };
  if (status === undefined && (await second.hasEnded())) return { holds: false, seen: 'the process ends' };
  return { holds: status !== undefined && !acknowledged(status), seen: said(status) };
}

/**
 * In groups: the situations of a group run at the same time. Those that are `slow` wait for the first retry of the
 * service. `storeDown` is last, because nothing works after it.
 */
export const situations = [
  {
    group: [
      { title: 'copy after success', run: copyAfterSuccess },
      { title: 'failure, then retry', run: failureThenRetry },
      { title: 'write, then failure', run: writeThenFailure },
      { title: 'copy meanwhile', run: copyMeanwhile },
      { title: 'same id, other facts', run: otherFacts },
    ],
  },
  { group: [{ title: 'two concurrent copies', run: copiesAtOnce }] },
  {
    slow: true,
    group: [
      { title: 'killed in the handler', run: killedInHandler },
      { title: 'late failure', run: lateFailure },
    ],
  },
  { group: [{ title: 'store down', run: storeDown }] },
];
