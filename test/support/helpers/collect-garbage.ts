import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** Frees what nothing refers to, as V8 does at a major collection. */
export const collectGarbage = runInNewContext('gc') as () => void;
