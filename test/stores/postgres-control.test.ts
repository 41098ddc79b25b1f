import { describe, expect, test } from 'vitest';
import { translateControl } from '../../src/stores/postgres-control.js';

describe('the fence', () => {
  const [begin, commit, rollback] = [
    { sql: 'SAVEPOINT transfer_callbacks_handler', opens: true },
    { sql: 'RELEASE SAVEPOINT transfer_callbacks_handler', opens: false },
    { sql: 'ROLLBACK TO SAVEPOINT transfer_callbacks_handler', opens: false },
  ];

  test.each([
    'BEGIN',
    'begin;',
    'BEGIN WORK',
    'BEGIN TRANSACTION;',
    'start  transaction',
    '\n-- by the ORM\n  begin /* traced */;',
    '/* a */ /* b */ ; BEGIN -- c',
    '/* /* a */ b */ BEGIN',
    'start transaction isolation level read committed read write',
    'BEGIN TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;',
  ])('the fence begins a savepoint for %j', (text) => {
    expect(translateControl(text, false)).toEqual(begin);
  });

  test.each([
    'COMMIT',
    'commit;',
    'END',
    'COMMIT WORK',
    'end transaction;',
    'COMMIT AND NO CHAIN',
    "COMMIT /*app='x'*/",
    '/* /* a */ b */ COMMIT /* c /* d */ e */ WORK',
  ])('the fence releases the savepoint for %j, and refuses it without one', (text) => {
    expect(translateControl(text, true)).toEqual(commit);
    expect(() => translateControl(text, false)).toThrow('the store ends the transaction');
  });

  test.each(['ROLLBACK', 'rollback;', 'ABORT', 'ROLLBACK WORK', 'abort transaction', 'ROLLBACK AND NO CHAIN'])(
    'the fence rolls back to the savepoint for %j, and refuses it without one',
    (text) => {
      expect(translateControl(text, true)).toEqual(rollback);
      expect(() => translateControl(text, false)).toThrow('the store ends the transaction');
    },
  );

  test.each([
    'COMMIT AND CHAIN',
    'ROLLBACK AND CHAIN',
    "PREPARE TRANSACTION 'x'",
    "COMMIT PREPARED 'x'",
    "ROLLBACK PREPARED 'x'",
    'BEGIN; INSERT INTO ledger VALUES (1); COMMIT',
    'SELECT 1; COMMIT',
    'SELECT 1; /* a */ ROLLBACK; INSERT INTO ledger VALUES (1)',
    "SELECT 1;;\tPREPARE TRANSACTION 'x'",
    'ROLLBACK TO mine; END',
    'PREPARE statement AS SELECT 1; ABORT',
    'DO $$ BEGIN PERFORM 1; END $$; COMMIT',
    '/* /* x */ */ COMMIT; SELECT 1',
    // With `standard_conforming_strings` off the text ends before the COMMIT.
    String.raw`SELECT '\''; COMMIT; SELECT '`,
    // A body of SQL in a function: it cannot be told from statements, and a handler creates none.
    'CREATE FUNCTION one() RETURNS int BEGIN ATOMIC SELECT 1; END',
    'COMMIT; SELECT 1',
    '--\nrollback; select 1',
  ])('the fence refuses %j with a savepoint and without', (text) => {
    for (const isOpen of [false, true]) {
      expect(() => translateControl(text, isOpen)).toThrow(expect.objectContaining({ code: 'TRANSACTION_CONTROL' }));
    }
  });

  test('the fence refuses a BEGIN within one, because both could run at the same time', () => {
    for (const text of ['BEGIN', 'start transaction', 'BEGIN READ WRITE']) {
      expect(translateControl(text, false)).toMatchObject({ opens: true });
      expect(() => translateControl(text, true)).toThrow('a transaction is open already.');
    }
  });

  test.each([
    ['BEGIN ISOLATION LEVEL SERIALIZABLE', 'isolation level serializable'],
    ['start transaction isolation level repeatable read', 'isolation level repeatable read'],
    ['BEGIN READ ONLY', 'read only'],
  ])('the fence refuses %j, because the transaction has begun with other modes', (text, modes) => {
    expect(() => translateControl(text, false)).toThrow(
      `the store has begun the transaction already, and not as ${modes}.`,
    );
  });

  test.each([
    'SELECT 1',
    '',
    undefined,
    'ROLLBACK TO mine',
    'rollback to savepoint mine',
    'ROLLBACK WORK TO SAVEPOINT mine',
    'SAVEPOINT begin',
    'RELEASE mine',
    'PREPARE statement AS SELECT 1',
    'DO $$ BEGIN PERFORM 1; END $$',
    'SELECT 1; ROLLBACK TO mine; SELECT 2;',
    'beginning',
    "SELECT 'commit'",
    "SELECT '; commit'; SELECT 1",
    'SELECT $$; commit$$, ";commit"; -- ; commit',
    '/* /* a */ commit later */ SELECT 1',
    'SELECT 1; /* ; /* ; */ commit */ SELECT 2',
    '-- commit',
    '/* commit */ SELECT 1',
    'SET TRANSACTION READ ONLY',
  ])('the fence passes %j on unchanged', (text) => {
    expect(translateControl(text, false)).toBeUndefined();
  });
});
