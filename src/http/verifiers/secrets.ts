import { timingSafeEqual } from 'node:crypto';
import { invalidVariable } from '../../lib/checks.js';

/**
 * A secret of at least 16 characters, or a list of several during a rotation, the newest first. The type includes
 * `undefined` so that `process.env.SECRET` compiles, but making a verifier without its first secret throws. A later
 * `undefined` is skipped, so that `[process.env.SECRET, process.env.SECRET_PREVIOUS]` needs no condition.
 */
export type Secret = string | undefined | readonly (string | undefined)[];

export const minSecretLength = 16;

/** What an error expects in place of something else. */
export const secretDescription = `a string of at least ${minSecretLength} characters without blanks at its ends`;

/** The advice of an error about a secret that the app chooses. */
export const makeSecret = 'Write the output of `openssl rand -hex 32` into its environment variable.';

/**
 * Returns whether this is long enough not to be guessed. A newline of the file that it came from would refuse every
 * sender.
 */
export function isSecret(value: unknown): value is string {
  return typeof value === 'string' && value.length >= minSecretLength && value.trim() === value;
}

/** Returns the secrets as a list, the newest first. Throws INVALID_ARGUMENT. */
export function toSecretList(
  option: string,
  secret: Secret,
  example = 'process.env.CALLBACK_SECRET',
  remedy = makeSecret,
): readonly [string, ...string[]] {
  const [newest, ...older] = (Array.isArray(secret) ? secret : [secret]) as readonly unknown[];
  const list = [newest, ...older.filter((each) => each !== undefined)];
  for (const each of list) {
    if (isSecret(each)) continue;
    throw invalidVariable(option, `${secretDescription}, or several`, each, example, remedy);
  }
  return list as [string, ...string[]];
}

/** Returns a constant-time comparison with every secret. */
export function matcherOf(secrets: readonly string[]): (candidate: string) => boolean {
  const expected = secrets.map((secret) => Buffer.from(secret));
  return (candidate) => {
    const bytes = Buffer.from(candidate);
    return expected.reduce((found, secret) => {
      // `timingSafeEqual` throws on unequal lengths. Comparing the secret with itself takes the same time.
      const alike = bytes.length === secret.length;
      return (timingSafeEqual(alike ? bytes : secret, secret) && alike) || found;
    }, false);
  };
}
