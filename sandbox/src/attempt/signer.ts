import { toHeaders, type AttemptHeaders } from './headers.js';

/** The method of a verifier that signs as the service does, such as `sign` of `hmacSignature`. */
type Sign = (body: string | Uint8Array) => Record<string, string>;

/** Signs bodies as a service does, by the verifiers of its definition that can. */
export class Signer {
  readonly #isSigned: boolean;
  readonly #signs: readonly Sign[];

  /** A verifier that cannot sign `sample` is left out. */
  constructor(verify: unknown, sample: string) {
    const verifiers = [verify].flat();
    this.#isSigned = verifiers.some(readsBody);
    this.#signs = verifiers.flatMap(findSign).filter((sign) => trySign(sign, sample) !== undefined);
  }

  /** Whether callbacks with these headers would come without their signature. */
  isMissing(given: AttemptHeaders = {}): boolean {
    const isGiven = typeof given === 'function' || Object.keys(given).length > 0;
    return this.#isSigned && !this.canSign && !isGiven;
  }

  get canSign(): boolean {
    return this.#signs.length > 0;
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

function findSign(verify: unknown): readonly Sign[] {
  const { sign } = (verify ?? {}) as { sign?: unknown };
  return typeof sign === 'function' ? [sign as Sign] : [];
}

function trySign(sign: Sign, body: string | Uint8Array): Record<string, string> | undefined {
  try {
    return sign(body);
  } catch {
    return undefined;
  }
}
