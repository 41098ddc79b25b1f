// A merchant's process on a host with the timers of the web: each is a number, and keeps the process until it is
// cleared. There is no `setImmediate`.
import { Pool } from 'pg';
import { memoryStore, pgStore, transferCallbackHandler, type CallbackStore } from 'transfer-callbacks/web';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { readAppOptions } from './app.js';

export interface WebTimersOptions {
  readonly url: string;
}

/** What became of one callback and its copy on a store. */
export interface WebTimersReport {
  readonly typeOfTimer: string;
  readonly statuses: readonly number[];
  /** What was called, in this order. */
  readonly calls: readonly string[];
}

const timers = new Map<number, NodeJS.Timeout>();
const { setTimeout: setNodeTimeout, clearTimeout: clearNodeTimeout } = globalThis;

function setWebTimeout(call: (...args: unknown[]) => void, ms?: number, ...args: unknown[]): number {
  const timer = setNodeTimeout(() => {
    timers.delete(Number(timer));
    call(...args);
  }, ms);
  timers.set(Number(timer), timer);
  return Number(timer);
}

/** As on the web, it knows numbers alone. */
function clearWebTimeout(timer: unknown): void {
  clearNodeTimeout(timers.get(timer as number));
  timers.delete(timer as number);
}

Object.assign(globalThis, { setTimeout: setWebTimeout, clearTimeout: clearWebTimeout, setImmediate: undefined });

const leaseMs = 1_000;
/** After one more, the handler has outlived its first lease. */
const renewalsPerLease = 3;

/** A callback whose handler outlives its deadline and its lease, and then a copy of it. */
async function deliverTwice(store: CallbackStore<unknown>): Promise<WebTimersReport> {
  const calls: string[] = [];
  let renewals = 0;
  const handle = transferCallbackHandler({
    store: watchRenewals(store, () => (renewals += 1)),
    logger: false,
    ...{ leaseMs, storeTimeoutMs: 300, handlerTimeoutMs: 1_000 },
    async onSuccess(_callback, { afterCommit }) {
      afterCommit(() => calls.push('afterCommit'));
      while (renewals <= renewalsPerLease) await new Promise((resolve) => setTimeout(resolve, 10));
      calls.push('handled');
    },
    onFailed: () => undefined,
  });
  const body = JSON.stringify(transferSucceeded());
  const deliver = async (): Promise<number> => {
    const works: Promise<void>[] = [];
    const request = { method: 'POST', body, headers: { 'content-type': 'application/json' } };
    const waitUntil = (work: Promise<void>) => works.push(work);
    const { status } = await handle(new Request('http://localhost/callbacks', request), { waitUntil });
    await Promise.all(works);
    return status;
  };
  const statuses = [await deliver(), await deliver()];
  return { typeOfTimer: typeof setTimeout(() => undefined), statuses, calls };
}

function watchRenewals<Tx>(store: CallbackStore<Tx>, onRenewal: () => void): CallbackStore<Tx> {
  return {
    ...store,
    async claim(id, request) {
      const reply = await store.claim(id, request);
      if (reply.state !== 'claimed') return reply;
      const { claim } = reply;
      const renew = (): Promise<boolean> => {
        onRenewal();
        return claim.renew();
      };
      return {
        state: 'claimed',
        claim: { tx: claim.tx, renew, settle: () => claim.settle(), release: () => claim.release() },
      };
    },
  };
}

const { url } = readAppOptions() as WebTimersOptions;
const pool = new Pool({ connectionString: url });
const sql = pgStore(pool);
await sql.migrate();
const reports = [await deliverTwice(memoryStore()), await deliverTwice(sql)];
await pool.end();
process.send?.(reports);
