/** Returns a verifier with its members. Logs show its `name`, so it is a property: bundlers rename functions. */
export function makeVerifier<Verify extends (...parts: never[]) => boolean | Promise<boolean>, Members extends object>(
  name: string,
  accepts: Verify,
  members: Members,
): Verify & Members {
  return Object.defineProperty(Object.assign(accepts, members), 'name', { value: name });
}
