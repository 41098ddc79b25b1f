import type { TransferCallbackError } from '../../../src/lib/errors.js';
import { toHeaders, type AttemptHeaders } from './headers.js';

/** The method of a verifier that signs as the service does, such as `sign` of `hmacSignature`. */
type Sign = (body: string | Uint8Array, options?: object) => Record<string, string>;

/** What verifiers sign with that have no secret themselves. */
export interface SignWith {
  readonly secret?: string | undefined;
  /** Returns other options of `sign`, for each body. */
  readonly toOptions?: (() => object) | undefined;
}

/** A verifier that can sign, with the secret that it has or is given. */
interface Signing {
  readonly verifier: ((...args: readonly unknown[]) => unknown) & { readonly sign: Sign };
  readonly sign: Sign;
}

/** Signs bodies as a service does, by the verifiers of its definition that can. */
export class Signer {
  /** Whether a verifier needs a signature, and cannot make it. */
  readonly #lacksSignature: boolean;
  readonly #signings: readonly Signing[];
  readonly #signWith: SignWith;

  /** A verifier that cannot sign `sample` is left out. Throws INVALID_ARGUMENT if the secret is of another kind. */
  constructor(verify: unknown, sample: string, signWith: SignWith = {}) {
    const found = [verify].flat().map((verifier) => ({ verifier, sign: findSign(verifier, sample, signWith) }));
    this.#lacksSignature = found.some(({ verifier, sign }) => sign === undefined && readsBody(verifier));
    this.#signings = found.filter((each): each is Signing => each.sign !== undefined);
    this.#signWith = signWith;
  }

  /** Whether callbacks with these headers would come without their signature. */
  isMissing(given: AttemptHeaders = {}): boolean {
    const isGiven = typeof given === 'function' || Object.keys(given).length > 0;
    return this.#lacksSignature && !isGiven;
  }

  get canSign(): boolean {
    return this.#signings.length > 0 && !this.#lacksSignature;
  }

  /** Whether a body cannot be signed, such as one without the part that is signed. */
  fails(body: string): boolean {
    return this.#signings.some(({ sign }) => trySign(sign, body) === undefined);
  }

  /** Returns the headers with the signature of a body; none if it cannot be signed. */
  sign(body: string | Uint8Array): Readonly<Record<string, string>> {
    return Object.assign({}, ...this.#signings.map(({ sign }) => trySign(sign, body))) as Record<string, string>;
  }

  /**
   * Returns the headers with a signature that is right in everything but the secret. Where only the right secret can
   * sign, it is the signature of `other`, which is never sent.
   */
  forge(body: string, other: string): Readonly<Record<string, string>> {
    const { toOptions } = this.#signWith;
    const forged = this.#signings.map(({ verifier, sign }) => {
      const right = trySign(sign, body) ?? {};
      const made = trySign((text) => verifier.sign(text, { secret: anotherSecret, ...toOptions?.() }), body);
      if (made !== undefined && !isSame(made, right)) return made;
      const ofOther = trySign(sign, other) ?? {};
      return isSame(ofOther, right) ? scramble(right) : { ...ofOther, ...pick(right, isDigest) };
    });
    return Object.assign({}, ...forged) as Record<string, string>;
  }

  /** Returns the headers as they were made this many milliseconds before. */
  signBefore(body: string, ms: number): Readonly<Record<string, string>> {
    const now = Date.now.bind(Date);
    Date.now = () => now() - ms;
    try {
      return this.sign(body);
    } finally {
      Date.now = now;
    }
  }

  /** Resolves with whether the verifiers that sign believe these headers. */
  async believes(request: { method: string; url: string; headers: object }, body: string): Promise<boolean> {
    const isRight = async ({ verifier }: Signing) => (await verifier(request, undefined, Buffer.from(body))) === true;
    const verdicts = await Promise.all(this.#signings.map(isRight)).catch(() => [false]);
    return !verdicts.includes(false);
  }
}

/** In each encoding of `hmacSignature`. */
const anotherSecret = 'c0ffee'.repeat(12).slice(0, 64);

/** Whether a header has the digest of a body, which needs no secret. */
export const isDigest = (name: string): boolean => /^(?:content-)?digest$/i.test(name);

function isSame(headers: Readonly<Record<string, string>>, others: Readonly<Record<string, string>>): boolean {
  return JSON.stringify(headers) === JSON.stringify(others);
}

export function pick(
  headers: Readonly<Record<string, string>>,
  isRight: (name: string) => boolean,
): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => isRight(name)));
}

/** Returns another token of the same form in each header. */
function scramble(headers: Readonly<Record<string, string>>): Record<string, string> {
  const change = (value: string): string => value.replaceAll(/[A-Za-z\d](?=[^ ]*$)/g, (character) => next(character));
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, change(value)]));
}

const next = (character: string): string =>
  /[z9Z]/.test(character) ? 'a' : String.fromCharCode(character.charCodeAt(0) + 1);

/** Returns headers with a signature. What is given by hand replaces a signature of the same name. */
export function addSignature(
  given: AttemptHeaders,
  sign: (body: Buffer) => Readonly<Record<string, string>>,
): AttemptHeaders {
  return (body) => ({ ...sign(body), ...toHeaders(given, body) });
}

/** Whether a verifier reads the bytes of the body. Only a signature needs them. */
function readsBody(verify: unknown): boolean {
  return (verify as { readsBody?: boolean } | null | undefined)?.readsBody === true;
}

/** A verifier that has a secret itself needs none. */
function findSign(verify: unknown, sample: string, { secret, toOptions }: SignWith): Sign | undefined {
  const { sign } = (verify ?? {}) as { sign?: Sign };
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
