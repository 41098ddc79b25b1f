import { text, UsageError } from './arguments.js';
import { openPostgres, type OpenStore } from './drivers.js';
import { openRedis } from './redis-driver.js';

/** Options for commands that read the store. */
export const storeOptions = {
  redis: text,
  postgres: text,
  store: text,
  prefix: text,
  table: text,
  schema: text,
} as const;

type StoreValues = { readonly [Name in keyof typeof storeOptions]?: string | undefined };

/** Opens the store that the options or the environment name; `undefined` without one. Throws UsageError. */
export function findStore(values: StoreValues): (() => Promise<OpenStore>) | undefined {
  const url = { redis: findUrl('redis', values.redis), postgres: findUrl('postgres', values.postgres) };
  const kind = chooseStore(values, url);
  const { prefix, table, schema } = values;
  if (prefix !== undefined && kind !== 'redis') throw new UsageError('Expected --prefix with a Redis store only.');
  if ((table ?? schema) !== undefined && kind !== 'postgres') {
    throw new UsageError('Expected --table and --schema with a PostgreSQL store only.');
  }
  if (kind === 'redis') return openRedis(String(url.redis), { prefix });
  return kind === 'postgres' ? openPostgres(String(url.postgres), { table, schema }) : undefined;
}

const kinds = {
  redis: { variable: 'REDIS_URL', protocol: /^rediss?:$/, name: 'redis:// or rediss://' },
  postgres: { variable: 'DATABASE_URL', protocol: /^postgres(?:ql)?:$/, name: 'postgres://' },
} as const;

type Kind = keyof typeof kinds;

function findUrl(kind: Kind, given: string | undefined): string | undefined {
  const { variable, protocol, name } = kinds[kind];
  const url = given ?? process.env[variable];
  const parsed = url !== undefined && URL.canParse(url) ? new URL(url) : undefined;
  if (given === undefined) {
    // The app may use the same variable for something else, such as another database.
    return parsed !== undefined && protocol.test(parsed.protocol) ? url : undefined;
  }
  // The value is not shown: it may hold a password.
  if (parsed === undefined || !protocol.test(parsed.protocol)) {
    throw new UsageError(`Expected --${kind} to be a URL of ${name}.`);
  }
  if (parsed.password !== '') {
    throw new UsageError(`Expected --${kind} to be without a password: put such a URL into ${variable}.`);
  }
  return url;
}

function chooseStore({ redis, postgres, store }: StoreValues, found: Partial<Record<Kind, unknown>>): Kind | undefined {
  if (store !== undefined && store !== 'redis' && store !== 'postgres') {
    throw new UsageError(`Expected --store to be redis or postgres, got ${JSON.stringify(store)}.`);
  }
  if (store !== undefined) {
    if (found[store] !== undefined) return store;
    throw new UsageError(`Expected --${store} or ${kinds[store].variable} to name the store.`);
  }
  if ((redis === undefined) !== (postgres === undefined)) return redis === undefined ? 'postgres' : 'redis';
  if (found.redis !== undefined && found.postgres !== undefined) {
    throw new UsageError('Expected --store redis or --store postgres: the addresses of both are given.');
  }
  return (['redis', 'postgres'] as const).find((kind) => found[kind] !== undefined);
}
