import type { Redis } from 'ioredis';
import { redisStore, type CallbackStore } from 'transfer-callbacks';
import type { BrokenStore } from './changed-stores.js';

/** What a command of `redisStore` is about. */
interface Command {
  readonly key: string;
  readonly value: string;
  readonly ms: number;
}

type RedisChanges = Partial<
  Record<'claim' | 'settle' | 'renew' | 'release', (redis: Redis, command: Command) => Promise<unknown>>
>;

/** `redisStore` on a real Redis, with other commands in place of some of its own. */
export function changedRedisStore(redis: Redis, changes: RedisChanges): CallbackStore {
  return redisStore({
    call(name, ...args) {
      const script = /^eval/i.test(name);
      const [key = '', value = ''] = (script ? args.slice(2) : args).map(String);
      const has = (word: string): boolean => args.some((argument) => String(argument).toUpperCase() === word);
      const kind = /^get$/i.test(name)
        ? undefined
        : script
          ? (['release', 'renew'] as const)[args.length - 4]
          : has('NX')
            ? 'claim'
            : 'settle';
      const ms = Number(script ? args[4] : args[3]);
      const change = kind && changes[kind];
      return change ? change(redis, { key, value, ms }) : redis.call(name, ...args);
    },
  });
}

const onRedis = (changes: () => RedisChanges) => (redis: Redis) => changedRedisStore(redis, changes());

export const brokenRedisStores: readonly BrokenStore[] = [
  {
    fault: 'claims with XX',
    make: onRedis(() => ({ claim: (redis, { key, value, ms }) => redis.call('SET', key, value, 'PX', ms, 'XX') })),
    caughtBy: ['of fifty concurrent claims exactly'],
    says: /of 50 concurrent claims, .* one must be granted/,
  },
  {
    fault: 'looks first, and then takes what it found free',
    make: onRedis(() => ({
      async claim(redis, { key, value, ms }) {
        return (await redis.exists(key)) === 1 ? null : redis.call('SET', key, value, 'PX', ms);
      },
    })),
    caughtBy: [
      'of fifty concurrent claims exactly',
      'a released callback',
      'a lapsed lease',
      'a callback whose retention',
    ],
    says: /50 concurrent claims/,
  },
  {
    fault: 'shortens a handled record with a claim that it refuses',
    make: onRedis(() => ({
      async claim(redis, { key, value, ms }) {
        const reply = await redis.call('SET', key, value, 'PX', ms, 'NX');
        const handled = (await redis.get(key))?.startsWith('handled') === true;
        if (handled) await redis.pexpire(key, Math.min(ms, await redis.pttl(key)));
        return reply;
      },
    })),
    caughtBy: ['a handled record outlasts'],
    says: /a handled record was forgotten before its retention had passed/,
  },
  {
    fault: 'shortens a handled record with a renewal that it refuses',
    make: onRedis(() => ({
      async renew(redis, { key, value, ms }) {
        await redis.call('PEXPIRE', key, ms);
        return Number((await redis.get(key)) === value);
      },
    })),
    caughtBy: ['a handled record outlasts'],
    says: /a handled record was forgotten before its retention had passed/,
  },
  {
    fault: 'counts retention from the claim',
    make: onRedis(() => {
      const claimedAt = new Map<string, number>();
      return {
        claim(redis, { key, value, ms }) {
          if (!claimedAt.has(key)) claimedAt.set(key, performance.now());
          return redis.call('SET', key, value, 'PX', ms, 'NX');
        },
        settle(redis, { key, value, ms }) {
          const left = ms - (performance.now() - (claimedAt.get(key) ?? 0));
          return redis.call('SET', key, value, 'PX', Math.max(1, Math.round(left)), 'GET');
        },
      };
    }),
    caughtBy: ['retention counts'],
    says: /a handled record of \d+ ms lasted only/,
  },
  {
    fault: 'settles without PX',
    make: onRedis(() => ({ settle: (redis, { key, value }) => redis.call('SET', key, value, 'GET') })),
    caughtBy: ['retention counts', 'a callback whose retention'],
    says: /never ended/,
  },
  {
    fault: 'renews with SET, no matter who holds the claim',
    make: onRedis(() => ({
      renew: (redis, { key, value, ms }) => redis.call('SET', key, value, 'PX', ms).then(() => 1),
    })),
    caughtBy: [
      'after a release a renewal',
      "a late holder's renewal is refused and",
      "a late holder's renewal after",
      'a handled record outlasts',
    ],
    says: /renewed/,
  },
  {
    fault: 'releases with DEL, whatever is there',
    make: onRedis(() => ({ release: (redis, { key }) => redis.call('DEL', key) })),
    caughtBy: ["a late holder's release", 'a release after settling'],
    says: /release/,
  },
  {
    fault: 'deletes a handled record with a release, but no claim of another',
    make: onRedis(() => ({
      async release(redis, { key, value }) {
        const found = await redis.get(key);
        return found === value || found?.startsWith('handled') === true ? redis.call('DEL', key) : 0;
      },
    })),
    caughtBy: ["a late holder's release", 'a release after settling', "a late holder's success is kept and"],
    says: /handled|the success of another/,
  },
];
