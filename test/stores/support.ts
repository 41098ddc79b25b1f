/** What a claim of the PostgreSQL store asks for. */
export function requestOf(token: string, leaseMs = 30_000) {
  return { token, fingerprint: 'facts', leaseMs, retentionMs: 100_000 };
}
