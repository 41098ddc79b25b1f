import { TransferCallbackError } from '../core/errors.js';

/** What runs within the store's transaction in place of BEGIN, COMMIT or ROLLBACK. */
export interface Control {
  readonly sql: string;
  /** Whether a transaction of the handler is open once it has run. */
  readonly opens: boolean;
}

const savepoint = 'transfer_callbacks_handler';
/** White space, empty statements and comments. Nothing follows in the expression, so that it never backtracks. */
const skipped = /(?:[\s;]|--[^\n\r]*|\/\*[^]*?\*\/)*/y;
const controlKeyword = /(?:begin|start|commit|end|abort|rollback|prepare)\b/iy;
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
 * would end the store's transaction. It reads the beginning of a text only. The rest the store notices when it settles,
 * because its own savepoint is gone then.
 */
export function translateControl(text: unknown, isOpen: boolean): Control | undefined {
  if (typeof text !== 'string') return undefined;
  const keyword = findKeyword(text);
  if (keyword === undefined) return undefined;
  const statement = normalize(text);
  if (harmless.test(statement)) return undefined;
  const modes = beginning.exec(statement)?.[1];
  if (modes !== undefined) {
    // Concurrent transactions on one client cannot be told from nested ones: one's ROLLBACK would undo the other.
    if (isOpen) throw refuse(keyword, 'a transaction is open already. Run one after the other, or nest with SAVEPOINT');
    if (!currentModes.test(modes))
      throw refuse(keyword, `the store has begun the transaction already, and not as${modes}`);
    return { sql: `SAVEPOINT ${savepoint}`, opens: true };
  }
  if (isOpen && committing.test(statement)) return { sql: `RELEASE SAVEPOINT ${savepoint}`, opens: false };
  if (isOpen && rollingBack.test(statement)) return { sql: `ROLLBACK TO SAVEPOINT ${savepoint}`, opens: false };
  throw refuse(keyword);
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

function findKeyword(text: string): string | undefined {
  skipped.lastIndex = 0;
  skipped.exec(text);
  controlKeyword.lastIndex = skipped.lastIndex;
  return controlKeyword.exec(text)?.[0].toUpperCase();
}

function normalize(text: string): string {
  return text
    .replaceAll(/--[^\n\r]*|\/\*[^]*?\*\//g, ' ')
    .replaceAll(/^[\s;]+|[\s;]+$/g, '')
    .replaceAll(/\s+/g, ' ')
    .toLowerCase();
}
