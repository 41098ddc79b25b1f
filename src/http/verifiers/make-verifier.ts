/** Returns a verifier with its members. Its `name` in the logs is a property, because bundlers rename functions. */
export function makeVerifier<Verify extends (...parts: never[]) => boolean | Promise<boolean>, Members extends object>(
  name: string,
  accepts: Verify,
  members: Members,
): Verify & Members {
  return Object.defineProperty(Object.assign(accepts, members), 'name', { value: name });
}
