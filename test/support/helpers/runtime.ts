import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** Frees what nothing refers to, as V8 does at a major collection. */
export const collectGarbage = runInNewContext('gc') as () => void;

/** Blocks the event loop of this process, as a long synchronous job does. */
export function blockEventLoop(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
