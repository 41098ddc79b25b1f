import { TransferCallbackError } from '../core/errors.js';
import { splitStatements } from './postgres-statements.js';

/** What runs within the store's transaction in place of BEGIN, COMMIT or ROLLBACK. */
export interface Control {
  readonly sql: string;
  /** Whether a transaction of the handler is open once it has run. */
  readonly opens: boolean;
}

const savepoint = 'transfer_callbacks_handler';
const keyword = '(?:begin|start|commit|end|abort|rollback|prepare)\\b';
const controlKeyword = new RegExp(`^${keyword}`, 'i');
/** What a statement that controls the transaction begins with, after a comment or without one. */
const suspect = `\\s*(?:${keyword}|--|/\\*)`;
const suspectBeginning = new RegExp(`^${suspect}`, 'i');
const laterSuspect = new RegExp(`;${suspect}`, 'i');
/** Statements that begin with such a keyword and neither begin nor end a transaction. */
const harmless = /^(?:rollback(?: work| transaction)? to|prepare (?!transaction\b))/;
const level = 'isolation level (?:serializable|repeatable read|read (?:un)?committed)';
const beginning = new RegExp(
  `^(?:begin(?: work| transaction)?|start transaction)((?:,? (?:${level}|read (?:write|only)|(?:not )?deferrable))*)$`,
);
const currentModes = /^(?:,? (?:isolation level read committed|read write))*$/;
const committing = /^(?:commit|end)(?: work| transaction)?(?: and no chain)?$/;
const rollingBack = /^(?:rollback|abort)(?: work| transaction)?(?: and no chain)?$/;

/**
 * Translates BEGIN, COMMIT and ROLLBACK of a handler into SAVEPOINT, RELEASE and ROLLBACK TO, so that the transactions
 * of an ORM work within the store's. Returns `undefined` for all other statements. Throws TRANSACTION_CONTROL for what
 * would end the store's transaction, also if it is one of several statements.
 */
export function translateControl(text: unknown, isOpen: boolean): Control | undefined {
  if (typeof text !== 'string' || !isSuspect(text)) return undefined;
  const statements = splitStatements(text, { escapes: false });
  const found = statements.find(isControl) ?? findEscapedControl(text);
  if (found === undefined) return undefined;
  if (statements.length > 1 || statements[0] !== found) throw refuse(toKeyword(found));
  return translateStatement(found, isOpen);
}

/** Sorts out nearly every text, quickly also if it is long. */
function isSuspect(text: string): boolean {
  return suspectBeginning.test(text) || (text.includes(';') && laterSuspect.test(text));
}

function isControl(statement: string): boolean {
  return controlKeyword.test(statement) && !harmless.test(normalize(statement));
}

/**
 * Finds transaction control as a connection with `standard_conforming_strings = off` would, where a backslash may keep a
 * text open. Which setting the connection has is not known here: a text is refused if it controls under either.
 */
function findEscapedControl(text: string): string | undefined {
  // Stryker disable next-line StringLiteral: Equal: only faster.
  return text.includes('\\') ? splitStatements(text, { escapes: true }).find(isControl) : undefined;
}

function translateStatement(text: string, isOpen: boolean): Control {
  const word = toKeyword(text);
  const statement = normalize(text);
  const modes = beginning.exec(statement)?.[1];
  if (modes !== undefined) {
    // Concurrent transactions on one client cannot be told from nested ones: one's ROLLBACK would undo the other.
    if (isOpen) throw refuse(word, 'a transaction is open already. Run one after the other, or nest with SAVEPOINT');
    if (!currentModes.test(modes))
      throw refuse(word, `the store has begun the transaction already, and not as${modes}`);
    return { sql: `SAVEPOINT ${savepoint}`, opens: true };
  }
  if (isOpen && committing.test(statement)) return { sql: `RELEASE SAVEPOINT ${savepoint}`, opens: false };
  if (isOpen && rollingBack.test(statement)) return { sql: `ROLLBACK TO SAVEPOINT ${savepoint}`, opens: false };
  throw refuse(word);
}

/** Makes the error for what the handler's client refuses. */
export function refuse(
  what: string,
  why = 'the store ends the transaction. Return to commit, throw to roll back, and use SAVEPOINT to undo a part',
): TransferCallbackError {
  return new TransferCallbackError('TRANSACTION_CONTROL', `The handler's client refuses ${what}: ${why}.`);
}

/** Makes the error for a handler that has ended the store's transaction by a statement that was not refused. */
export function transactionEnded(cause?: unknown): TransferCallbackError {
  return new TransferCallbackError(
    'TRANSACTION_CONTROL',
    "The handler has ended the store's transaction by itself. Leave COMMIT and ROLLBACK to the store.",
    { cause },
  );
}

function toKeyword(statement: string): string {
  // Stryker disable next-line OptionalChaining,StringLiteral: Equal: what is refused begins with a keyword.
  return controlKeyword.exec(statement)?.[0].toUpperCase() ?? '';
}

function normalize(statement: string): string {
  return statement.replaceAll(/\s+/g, ' ').toLowerCase();
}
