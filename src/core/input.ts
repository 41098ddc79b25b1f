import type { Issue } from '../lib/standard-schema.js';

// A sender's JSON has no symbols. The package may be loaded twice, as ESM and as CommonJS, and `instanceof` recognises
// the class of one copy only.
const kind = Symbol.for('transfer-callbacks.input');

/** What a host hands to a receiver in place of a callback that it could not read: the delivery is `invalid`. */
export class Unreadable {
  readonly [kind] = 'unreadable';
  readonly issues: readonly Issue[];
  /** Set when the receiving app is at fault, for example when its middleware has consumed the body. */
  readonly error: Error | undefined;

  constructor(message: string, error?: Error) {
    this.issues = Object.freeze([Object.freeze({ path: Object.freeze([]), message })]);
    this.error = error;
  }
}

/**
 * What a host hands to a receiver if it has refused the sender before it read the body, and what its `verify` resolves
 * with if it refuses later: the delivery is `unauthorized`.
 */
export class Refused {
  readonly [kind] = 'refused';
  /** Names the verifier that has refused. */
  readonly by: string | undefined;
  /** Set if the verifier failed. */
  readonly error: unknown;

  constructor(by?: string, error?: unknown) {
    this.by = by;
    this.error = error;
  }
}

export function isUnreadable(input: unknown): input is Unreadable {
  return kindOf(input) === 'unreadable';
}

export function isRefused(input: unknown): input is Refused {
  return kindOf(input) === 'refused';
}

/** Every other input is a callback that was parsed, also one that throws when it is read. */
function kindOf(input: unknown): string | undefined {
  try {
    return (input as Partial<Unreadable | Refused> | null | undefined)?.[kind];
  } catch {
    return undefined;
  }
}
