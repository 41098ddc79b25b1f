import { TransferCallbackError, listCauses } from '../../lib/errors.js';
import type { Table } from './table.js';

/** How PostgreSQL and MySQL report a missing table. */
const codes: readonly unknown[] = ['42P01', 1146];
/** Prisma has the code in its message alone, and SQLite has none. */
const texts = /Code: `(?:42P01|1146)`|no such table/;

/** Returns NO_TABLE if a call of the store has failed because its table is missing, and otherwise `error` itself. */
export function nameMissingTable(error: unknown, table: Table): unknown {
  if (lacksHandledAt(error)) {
    const rename = `ALTER TABLE ${table.name} RENAME COLUMN settled_at TO handled_at`;
    const message = `The table \`${table.plainName}\` has no column \`handled_at\`. Write \`${rename}\`.`;
    return new TransferCallbackError('NO_TABLE', message, { cause: error });
  }
  if (!isReported(error, table)) return error;
  const advice = 'Call `await store.migrate()` when the app starts, or run `store.migrationSql` with a migration tool';
  return new TransferCallbackError('NO_TABLE', `The table \`${table.plainName}\` does not exist. ${advice}.`, {
    cause: error,
  });
}

/** Whether an error reports that a table has the layout of a version before the first release. */
function lacksHandledAt(error: unknown): boolean {
  return listCauses(error).some(({ message }) => /column.{1,10}handled_at/i.test(String(message)));
}

/** Whether an error reports that this table is missing, however a library has wrapped it. */
function isReported(error: unknown, { plainName }: Table): boolean {
  return listCauses(error).some(({ code, errno, message }) => {
    const text = String(message);
    return (codes.includes(code) || codes.includes(errno) || texts.test(text)) && hasName(text, plainName);
  });
}

/** Whether a string has a name, and not only a longer one: a trigger of the table may miss another table of the app. */
function hasName(text: string, name: string): boolean {
  const parts = text.split(name);
  return parts.some((part, index) => index > 0 && !/^\w/.test(part) && !/\w$/.test(parts[index - 1] ?? ''));
}
