import { describeHolder } from '../../core/delivery.js';
import type { Claim, ClaimRequest } from '../../core/store.js';
import {
  claimTries,
  endRecord,
  inProgress,
  readRow,
  toRefusal,
  toHandledRecord,
  type Mechanism,
  type Query,
} from './claims.js';
import { isLive, isHandled, toHex, type Row, type Syntax, type Table } from './table.js';

export const sqliteSyntax: Syntax = {
  quote: '"',
  key: 'text',
  text: 'text',
  now: "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
  literal: (text) => `CAST(X'${toHex(text)}' AS TEXT)`,
  show: (column) => column,
  parse: (shown) => shown,
  deleteFrom: (table) => `DELETE FROM ${table}`,
};

/** Claims callbacks in SQLite, by a lease. Their handlers have no transaction. */
export function sqliteMechanism({ query }: { readonly query: Query }, table: Table): Mechanism<undefined> {
  return {
    async claim({ ids: [id = ''] }, request) {
      for (let tried = 0; tried < claimTries; tried += 1) {
        const [inserted] = await query(insert(table, id, request));
        const row = inserted === undefined ? await readRow(query, table, id) : undefined;
        if (inserted !== undefined || isHeldBy(row, request.token)) {
          return { state: 'claimed', claim: toClaim(query, table, id, request) };
        }
        // Another delivery has just released its claim: the caller claims again.
        if (row === undefined) break;
        if (isLive(row)) return toRefusal(row);
        await query(table.removeEnded([id])).catch(() => undefined);
      }
      return inProgress;
    },
    async read(id) {
      const row = await readRow(query, table, id);
      if (isHandled(row)) return toHandledRecord(row);
      if (row === undefined || !isLive(row)) return { state: 'free' };
      const since = new Date(row.claimedAt);
      return { state: 'claimed', delivery: row.token, ...describeHolder(row.token), since, leaseLeftMs: row.leftMs };
    },
    forget: (id, fingerprint) => endRecord(query, table, id, fingerprint),
  };
}

function isHeldBy(row: Row | undefined, token: string): boolean {
  return row?.token === token && row.fingerprint === null && isLive(row);
}

function toClaim(query: Query, table: Table, id: string, request: ClaimRequest): Claim {
  const { now, literal } = table.syntax;
  const handled = table.handledValues(request);
  const isId = table.isId([id]);
  const isHeld = `${isId} AND ${table.isHeld(request.token)}`;
  let overlapped = false;
  return {
    tx: undefined,
    async renew() {
      await query(`UPDATE ${table.name} SET expires_at = ${now} + ${request.leaseMs}
WHERE ${isHeld} AND expires_at > ${now}`);
      return isHeldBy(await readRow(query, table, id), request.token);
    },
    async settle() {
      await query(`UPDATE ${table.name} SET ${handled} WHERE ${isHeld} AND expires_at > ${now}`);
      const row = await readRow(query, table, id);
      if (row?.token !== request.token || row.fingerprint === null) {
        // Before the reply, which may be lost: then the row is this delivery's when it is asked again.
        overlapped = true;
        // Over the claim of another delivery, or where there is no row.
        await query(insert(table, id, request));
        await query(`UPDATE ${table.name} SET token = ${literal(request.token)}, ${handled} WHERE ${isId}`);
      }
      return { overlapped };
    },
    async release() {
      await query(`DELETE FROM ${table.name} WHERE ${isHeld}`);
    },
  };
}

/** Returns no row if there is a row of this id. */
function insert(table: Table, id: string, request: ClaimRequest): string {
  return `${table.insert([id], request, request.leaseMs)} ON CONFLICT (id) DO NOTHING RETURNING id`;
}
