/** What `check` warns of on Drizzle, Knex and TypeORM. */
const harmful =
  'The driver has a `query_timeout`. If the reply to a BEGIN is late, this library loses the connection, or a write of the app. Set `statement_timeout` and `keepAlive: true` in its place.';

/** Returns a warning if one of these options of a driver, or an address in them, has the `query_timeout` of pg. */
export function warnOfQueryTimeout(...given: readonly unknown[]): readonly string[] {
  return given.some(hasQueryTimeout) ? [harmful] : [];
}

function hasQueryTimeout(options: unknown): boolean {
  if (typeof options === 'string') return /[?&]query_timeout=[1-9]/.test(options);
  const { query_timeout, connectionString, url } = (options ?? {}) as Readonly<Record<string, unknown>>;
  return (
    Number(query_timeout) > 0 ||
    [connectionString, url].some((each) => typeof each === 'string' && hasQueryTimeout(each))
  );
}
