import type { TransferCallbackError } from '../../../src/lib/errors.js';
import { toHeaders, type AttemptHeaders } from './headers.js';

/** The method of a verifier that signs as the service does, such as `sign` of `hmacSignature`. */
type Sign = (body: string | Uint8Array) => Record<string, string>;

/** What verifiers sign with that have no secret themselves. */
export interface SignWith {
  readonly secret?: string | undefined;
  /** Returns other options of `sign`, for each body. */
  readonly toOptions?: (() => object) | undefined;
}

/** Signs bodies as a service does, by the verifiers of its definition that can. */
export class Signer {
  /** Whether a verifier needs a signature, and cannot make it. */
  readonly #lacksSignature: boolean;
  readonly #signs: readonly Sign[];

  /** A verifier that cannot sign `sample` is left out. Throws INVALID_ARGUMENT if the secret is of another kind. */
  constructor(verify: unknown, sample: string, signWith: SignWith = {}) {
    const found = [verify].flat().map((each) => ({ verifier: each, sign: findSign(each, sample, signWith) }));
    this.#lacksSignature = found.some(({ verifier, sign }) => sign === undefined && readsBody(verifier));
    this.#signs = found.flatMap(({ sign }) => sign ?? []);
  }

  /** Whether callbacks with these headers would come without their signature. */
  isMissing(given: AttemptHeaders = {}): boolean {
    const isGiven = typeof given === 'function' || Object.keys(given).length > 0;
    return this.#lacksSignature && !isGiven;
  }

  get canSign(): boolean {
    return this.#signs.length > 0 && !this.#lacksSignature;
  }

  /** Whether a body cannot be signed, such as one without the part that is signed. */
  fails(body: string): boolean {
    return this.#signs.some((sign) => trySign(sign, body) === undefined);
  }

  /** Returns the headers with the signature of a body; none if it cannot be signed. */
  sign(body: string | Uint8Array): Readonly<Record<string, string>> {
    return Object.assign({}, ...this.#signs.map((sign) => trySign(sign, body))) as Record<string, string>;
  }
}

/** Returns headers with a signature. What is given by hand replaces a signature of the same name. */
export function addSignature(
  given: AttemptHeaders,
  sign: (body: Buffer) => Readonly<Record<string, string>>,
): AttemptHeaders {
  return (body) => ({ ...sign(body), ...toHeaders(given, body) });
}

/** Whether a verifier takes the bytes of the body: what is no signature needs none. */
function readsBody(verify: unknown): boolean {
  return typeof verify === 'function' && verify.length > 2;
}

/** A verifier that has a secret itself needs none. */
function findSign(verify: unknown, sample: string, { secret, toOptions }: SignWith): Sign | undefined {
  const { sign } = (verify ?? {}) as { sign?: (...args: readonly unknown[]) => Record<string, string> };
  if (typeof sign !== 'function') return undefined;
  const signWithSecret: Sign = (body) => sign(body, { secret, ...toOptions?.() });
  const found = [sign, signWithSecret].find((each) => trySign(each, sample) !== undefined);
  if (found === undefined && secret !== undefined) requireUsable(() => signWithSecret(sample));
  return found;
}

/** Throws if it is the secret that cannot sign. */
function requireUsable(sign: () => unknown): void {
  try {
    sign();
  } catch (error) {
    if ((error as Partial<TransferCallbackError>).option === 'secret') throw error;
  }
}

function trySign(sign: Sign, body: string | Uint8Array): Record<string, string> | undefined {
  try {
    return sign(body);
  } catch {
    return undefined;
  }
}
