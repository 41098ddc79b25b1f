import { describeInvalid, UsageError } from '../../../../src/cli/arguments.js';
import type { TransferCallbackError } from '../../../../src/lib/errors.js';

/** Returns the headers that prove the sender of a body. Throws for a body without the part that is signed. */
export type Sign = (body: string) => Record<string, string>;

/** The variable of the secret that is in no definition. */
export const secretVariable = 'CALLBACK_SECRET';

/** What verifiers sign with that have no secret themselves. */
export interface SignWith {
  /** The value of CALLBACK_SECRET. */
  readonly secret: string | undefined;
  /** Returns other options of `sign`, for each body. */
  readonly toOptions?: (() => object) | undefined;
}

/** Returns what signs a body as the service does, by its verifiers. Throws UsageError if CALLBACK_SECRET is wrong. */
export function findSigners(verify: unknown, body: string, { secret, toOptions }: SignWith): Sign[] {
  return [verify].flat().flatMap((each) => {
    const { sign } = (each ?? {}) as { sign?: (body: string, options?: object) => Record<string, string> };
    if (typeof sign !== 'function') return [];
    const all: Sign[] = [(text) => sign(text), (text) => sign(text, { secret, ...toOptions?.() })];
    const signer = all.find((each) => trySign(each, body) !== undefined);
    if (signer === undefined && secret !== undefined) requireUsable(() => sign(body, { secret }));
    return signer === undefined ? [] : [signer];
  });
}

function requireUsable(sign: () => unknown): void {
  try {
    sign();
  } catch (error) {
    const invalid = error as Partial<TransferCallbackError>;
    if (invalid.option === 'secret') throw new UsageError(describeInvalid(secretVariable, invalid));
  }
}

/** Returns `undefined` for a body that cannot be signed. */
export function trySign(sign: Sign, body: string): Record<string, string> | undefined {
  try {
    return sign(body);
  } catch {
    return undefined;
  }
}
