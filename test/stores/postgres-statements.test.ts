import type { PoolClient } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { translateControl } from '../../src/stores/postgres-control.js';
import { splitStatements } from '../../src/stores/postgres-statements.js';
import fc from '../support/fast-check.js';
import { majors, startPostgres, type PostgresServer } from '../support/postgres.js';

describe('a text is split into the statements that Postgres runs', () => {
  test.each<[string, string[]]>([
    ['SELECT 1', ['SELECT 1']],
    [' ; SELECT 1;; SELECT 2 ; ', ['SELECT 1', 'SELECT 2']],
    [`SELECT ';' ";" ';''' ; x`, [`SELECT ';' ";" ';'''`, 'x']],
    [String.raw`SELECT E'\';' ; x`, [String.raw`SELECT E'\';'`, 'x']],
    [String.raw`SELECT '\'; x`, [String.raw`SELECT '\'`, 'x']],
    [String.raw`SELECT nameE'\'; x`, [String.raw`SELECT nameE'\'`, 'x']],
    [`SELECT e'a'\n -- b\n '\\';' ; x`, [`SELECT e'a'\n  \n '\\';'`, 'x']],
    [`SELECT e'a' || '\\'; x`, [`SELECT e'a' || '\\'`, 'x']],
    [`-- don't\nx; y`, ['x', 'y']],
    ['DO $$ a; $b$ ; $$; x', ['DO $$ a; $b$ ; $$', 'x']],
    ['DO $b$ a; $$ ; $b$; x', ['DO $b$ a; $$ ; $b$', 'x']],
    ['SELECT a$b$ ; x$b$', ['SELECT a$b$', 'x$b$']],
    ['SELECT $1; x', ['SELECT $1', 'x']],
    ['/* a; /* b; */ c; */ x', ['x']],
    ['/*/ a; */ x /**/; y', ['x', 'y']],
    ['COMMIT/* a */AND CHAIN -- b', ['COMMIT AND CHAIN']],
    [`x; 'a; b`, ['x', `'a; b`]],
    [`x; "a; b`, ['x', `"a; b`]],
    ['x; /* a; b', ['x']],
    ['x; $$ a; b', ['x', '$$ a; b']],
    ['x; $a$ b; $A$', ['x', '$a$ b; $A$']],
  ])('%j is split where Postgres splits it', (text, statements) => {
    expect(splitStatements(text, { escapes: false })).toEqual(statements);
  });

  test('a backslash keeps a plain text open if it escapes there', () => {
    const text = String.raw`SELECT '\'; x'; y`;
    expect(splitStatements(text, { escapes: true })).toEqual([String.raw`SELECT '\'; x'`, 'y']);
  });
});

const inner = fc
  .array(fc.constantFrom(';', 'COMMIT', ' ', '\\', "''", '--', '/*', '*/', '$$', '$a$', 'é', '\n', "e'", '""'))
  .map((parts) => parts.join(''));
const closed = (open: string, close: string): fc.Arbitrary<string> =>
  inner.map((body) => `${open}${body.replaceAll(close, '')}${close}`);
const comment = fc.oneof(
  inner.map((body) => `--${body.replaceAll('\n', '')}\n`),
  inner.map((body) => `/*${body.replaceAll(/\/\*|\*\//g, '')}/*${body.replaceAll(/\/\*|\*\//g, '')}*/ ; COMMIT */`),
);
const space = fc.oneof(fc.constantFrom(' ', '\n', '\t'), comment);
const quoted = fc.oneof(
  inner.map((body) => `'${body}'`),
  inner.map((body) => `E'${body}'`),
  inner.map((body) => `e'a' \n'${body}'`),
  inner.map((body) => `e'a' -- b\n --c\n '${body}'`),
  inner.map((body) => `n'${body}'`),
  closed('$$', '$$'),
  closed('$a$', '$a$'),
  inner.map((body) => `1 AS "${body}x"`),
  fc.constantFrom("'' AS nameE", 'NULL AS a$b$c', "'\\' AS é", '1 AS x$$'),
);
const select = fc.tuple(quoted, space, quoted).map(([a, between, b]) => `SELECT${between}${a},${between}${b}`);
const statement = fc.oneof(
  { weight: 3, arbitrary: select },
  { weight: 1, arbitrary: fc.constantFrom('COMMIT', 'rollback', 'ROLLBACK TO mine', 'END', '') },
);
const text = fc
  .array(fc.tuple(fc.oneof(fc.constant(''), space), statement), { minLength: 1, maxLength: 4 })
  .map((parts) => parts.map(([before, each]) => `${before}${each}`).join(';'));

describe.each(majors)('on PostgreSQL %i', (major) => {
  let server: PostgresServer;
  let client: PoolClient;

  beforeAll(async () => {
    server = await startPostgres(major);
    client = await server.pool().connect();
  });
  afterAll(() => server.stop());

  /** Runs a text in a transaction. Returns whether it has ended the transaction, or has failed without doing so. */
  async function run(sql: string): Promise<'ended' | 'failed' | 'open'> {
    await client.query('BEGIN; SAVEPOINT mine');
    await client.query(sql).catch(() => undefined);
    // After an error `pg` reads the status with the next reply.
    await client.query('SELECT').catch(() => undefined);
    const status = client.getTransactionStatus();
    await client.query('ROLLBACK');
    return status === 'I' ? 'ended' : status === 'E' ? 'failed' : 'open';
  }

  function isRefused(sql: string): boolean {
    try {
      return translateControl(sql, false) !== undefined;
    } catch {
      return true;
    }
  }

  test.each(['on', 'off'])(
    'every text is refused that would end the transaction, and few others, with standard_conforming_strings %s',
    async (setting) => {
      await client.query(`SET standard_conforming_strings = ${setting}; SET escape_string_warning = off`);
      const seen = { ended: 0, failed: 0, open: 0 };
      await fc.assert(
        fc.asyncProperty(text, async (sql) => {
          const became = await run(sql);
          seen[became] += 1;
          if (became === 'ended') expect(isRefused(sql), sql).toBe(true);
          // A backslash may be read in two ways.
          if (became === 'open' && !sql.includes('\\')) expect(isRefused(sql), sql).toBe(false);
        }),
        // Read right only if the second text goes on with the first, and the third does not.
        { numRuns: 2_000, examples: [[String.raw`SELECT E'a'${'\n'}'\'', '\'; COMMIT; SELECT 'x'`]] },
      );
      expect(Math.min(seen.ended, seen.open), JSON.stringify(seen)).toBeGreaterThan(100);
    },
  );
});

describe('the time for a text grows as its length does', () => {
  const shapes: [string, (length: number) => string][] = [
    [
      'an INSERT of many rows',
      (length) => `INSERT INTO t VALUES ${"(1, 'a;b', E'c\\d'), ".repeat(length / 20)}; COMMIT`,
    ],
    ['an INSERT of one long text', (length) => `; /* a */ INSERT INTO t VALUES ('${'x'.repeat(length)}')`],
    ['spaces', (length) => `${' '.repeat(length)}SELECT 1; COMMIT`],
    ['semicolons', (length) => `${';'.repeat(length)} COMMIT`],
    ['semicolons and spaces', (length) => `${'; '.repeat(length / 2)} COMMIT`],
    ['comments of a line', (length) => `${'--a;\n'.repeat(length / 5)} COMMIT`],
    ['one long comment of a line', (length) => `--${'-'.repeat(length)}`],
    ['comments', (length) => `${'/*;*/'.repeat(length / 5)} COMMIT`],
    ['nested comments without an end', (length) => '; /*'.repeat(length / 4)],
    ['comments that begin in texts', (length) => `; /**/ ${"';/*'".repeat(length / 5)}`],
    [
      'dollar quotes without an end',
      (length) => `; /**/ ${Array.from({ length: length / 8 }, (_, n) => `$a${n}$`).join(' ')}`,
    ],
    ['dollars', (length) => `; /**/ ${'$ '.repeat(length / 2)}`],
    ['dollars and letters', (length) => `; /**/ $${'a'.repeat(length)}`],
    ['texts without an end', (length) => `; /**/ '${"''".repeat(length / 2)}`],
    ['escapes without an end', (length) => `; /**/ E'${"\\'".repeat(length / 2)}`],
    ['texts that go on on the next line', (length) => `; /**/ E'a'${"\n'a'".repeat(length / 4)}`],
    ['an escape and comments', (length) => `; /**/ E'a'${'--\n'.repeat(length / 3)}'b'`],
    ['names without an end', (length) => `; /**/ "${'""'.repeat(length / 2)}`],
    ['harmless control statements', (length) => 'ROLLBACK TO a; '.repeat(length / 15)],
    ['a long harmless control statement', (length) => `PREPARE a AS SELECT ${'1, '.repeat(length / 3)}1`],
    ['backslashes', (length) => `; /**/ '${'\\'.repeat(length)}'; SELECT 1`],
  ];

  /** The least processor time of several attempts, in milliseconds: other programs do not add to it. */
  function timeOf(sql: string): number {
    const times = Array.from({ length: 3 }, () => {
      const before = process.cpuUsage();
      expectResponse(sql);
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1_000;
    });
    return Math.min(...times);
  }

  function expectResponse(sql: string): void {
    try {
      translateControl(sql, false);
    } catch (error) {
      expect(error).toMatchObject({ code: 'TRANSACTION_CONTROL' });
    }
  }

  test.each(shapes)('the time for %s grows as the text does', (_title, make) => {
    const [short, long] = [timeOf(make(20_000)), timeOf(make(160_000))];
    // Eight times the text: eight times the time, and sixty-four times if the time grew as the square.
    expect(long).toBeLessThan(32 * Math.max(short, 1));
  });

  test('texts of ten megabytes are read without exhausting the stack', () => {
    for (const title of ['an INSERT of many rows', 'spaces', 'one long comment of a line', 'texts without an end']) {
      const make = shapes.find(([name]) => name === title)?.[1] ?? expect.fail(title);
      expectResponse(make(10_000_000));
    }
  });
});
