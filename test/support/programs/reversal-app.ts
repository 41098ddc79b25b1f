/**
 * A merchant's app as a separate process, whose service takes successes back. See test/faults/reversal-race.test.ts.
 */
import { Redis } from 'ioredis';
import { createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import { mysqlStore, pgStore, redisStore } from 'transfer-callbacks';
import { mysqlTransaction } from '../helpers/mysql-transaction.js';
import { pgTransaction } from '../helpers/pg-transaction.js';
import { readAppOptions } from './app.js';
import { serveReversals } from './reversals.js';

const { kind, url, port } = readAppOptions() as { kind: 'redis' | 'pg' | 'mysql2'; url: string; port: number };

if (kind === 'redis') {
  const redis = new Redis(url);
  await serveReversals({ store: redisStore(redis), write: (_tx, booked) => redis.incr(booked), port });
} else if (kind === 'pg') {
  const pool = new Pool({ connectionString: url, max: 10 });
  await serveReversals({ store: pgStore(pool), write: (...booking) => pgTransaction(pool).write(...booking), port });
} else {
  const pool = createPool({ uri: url, connectionLimit: 10 });
  await serveReversals({
    store: mysqlStore(pool),
    write: (...booking) => mysqlTransaction(pool).write(...booking),
    port,
  });
}
