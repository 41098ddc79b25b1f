import { expectIn, judgeAttempt, toResult, type Judgement } from './judgement.js';
import { hasOutcome, nameAttempt, toCallbackState, type CallbackState } from './callback-state.js';
import type { SandboxEvent, TransferHistory } from './history.js';

/** What a page of the console asks for. */
export interface PageQuery {
  /** Only transfers with this string; empty for all. */
  readonly find: string;
  /** Only transfers of this outcome; empty for all. */
  readonly outcome: string;
  /** The transfer that is shown; empty for the newest one that is listed, or else for the newest of all. */
  readonly id: string;
}

/** A row of the list. */
export interface Row extends CallbackState {
  readonly id: string;
  readonly externalId: string;
  /** Such as `FAILED, then SUCCESS`. */
  readonly state: string;
  /** Counted from 1 in the order of creation. */
  readonly place: number;
}

/** What a page shows of the transfers. */
export interface View {
  /** How many transfers there are. */
  readonly total: number;
  /** How many of them were asked for. */
  readonly matching: number;
  /** The newest of those, in the order of creation. */
  readonly rows: readonly Row[];
  readonly shown: TransferHistory | undefined;
}

/** An event as the page is sent it. */
export type ShownEvent =
  Exclude<SandboxEvent, { type: 'attempt' }> | (AttemptEvent & { readonly attempt: ShownAttempt });
type AttemptEvent = Extract<SandboxEvent, { type: 'attempt' }>;
type ShownAttempt = Judgement & {
  readonly name: string;
  readonly result: string;
  readonly contradictedBody: string | undefined;
};

/** A page with more rows would be slow to read. */
const listedTransfers = 200;

/** Returns what a page shows of the transfers, which are in the order of creation. */
export function viewTransfers(byId: ReadonlyMap<string, TransferHistory>, { find, outcome, id }: PageQuery): View {
  const text = find.trim().toLowerCase();
  const all = [...byId.values()];
  const matches = all.filter((transfer) => hasOutcome(outcome, transfer) && includes(transfer, text));
  const newest = matches.slice(-listedTransfers);
  return {
    total: byId.size,
    matching: matches.length,
    rows: newest.map(toRow),
    // Where the list is empty the page must not change to the form.
    shown: id === '' ? (newest.at(-1) ?? all.at(-1)) : byId.get(id),
  };
}

export function toShownEvent(event: SandboxEvent, transfer: TransferHistory): ShownEvent {
  if (event.type !== 'attempt') return event;
  const { attempt } = event;
  const contradictedBody = expectIn(transfer, attempt).contradicted?.body;
  const shown = { ...attempt, name: nameAttempt(attempt, transfer), ...judgeAttempt(attempt, transfer) };
  return { ...event, attempt: { ...shown, result: toResult(attempt), contradictedBody } };
}

function toRow(transfer: TransferHistory): Row {
  const { id, externalId } = transfer.facts;
  return { id, externalId, place: transfer.place, state: transfer.stateInWords, ...toCallbackState(transfer) };
}

function includes(transfer: TransferHistory, text: string): boolean {
  if (text === '' || transfer.searchText.includes(text)) return true;
  const { stateInWords, attempts } = transfer;
  return `${stateInWords} ${toCallbackState(transfer).text} ${attempts.at(-1)?.reason ?? ''}`
    .toLowerCase()
    .includes(text);
}
