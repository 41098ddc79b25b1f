import type { TransferCallback } from '../core/callback.js';
import { invalidOption } from '../core/errors.js';
import { deliverCallback, type DeliveryTerms } from './deliveries.js';
import { callbackUrlFault, requireScenario, type ResolvedSandboxOptions } from './options.js';
import { conducts, scenarioOf, type Conduct, type DeliveryConduct, type TransferScenario } from './scenarios.js';
import { callbackOf, isObject, pendingTransaction, seededFacts, type SandboxFacts } from './transactions.js';

/** A transfer as the sandbox knows it. `pending` is a word of the sandbox: the service documents none. */
export type SandboxTransfer = {
  readonly id: string;
  readonly externalId: string;
  readonly scenario: TransferScenario;
  /** Whether `callback` has been acknowledged with 2xx. */
  readonly delivered: boolean;
} & (
  | { readonly state: 'pending'; readonly callback: undefined }
  /** `callback` is the outcome, whether or not the scenario delivers it. */
  | { readonly state: 'SUCCESS' | 'FAILED'; readonly callback: TransferCallback }
);

/** What a request of the merchant comes to: an answer with data, or one with an error body. */
export type Result = { status: 200 | 201; data: object } | { status: 400 | 404 | 409 | 500; message: string };

interface Transfer {
  readonly facts: SandboxFacts;
  readonly scenario: TransferScenario;
  readonly conduct: Conduct;
  readonly callbackUrl: string | undefined;
  /** Its bytes are fixed with it: every attempt, and a later resend, sends the same. */
  final: { readonly callback: TransferCallback; readonly body: string; readonly atMs: number } | undefined;
  delivered: boolean;
  failingQueries: number;
}

/** Every transfer of one sandbox: created, final after a while, and then announced as its scenario has it. */
export function sandboxTransfers(options: ResolvedSandboxOptions, terms: DeliveryTerms) {
  const { clock } = terms;
  const drawFacts = seededFacts(options.seed);
  const all: Transfer[] = [];
  const chosen = new Map<string, TransferScenario>();

  const byExternalId = (externalId: string) => all.find(({ facts }) => facts.externalId === externalId);
  const find = (name: string) => all.find(({ facts }) => facts.id === name) ?? byExternalId(name);

  async function create(request: unknown): Promise<Result> {
    if (!isObject(request)) return { status: 400, message: 'The body is not a JSON object' };
    const { callbackUrl = options.callbackUrl } = request;
    const fault = callbackUrl === undefined ? undefined : callbackUrlFault(callbackUrl, options.allowOtherHosts);
    if (fault !== undefined) return { status: 400, message: `Expected callbackUrl to be ${fault}` };
    // The documentation calls it unique (service §2.1), and does not say what becomes of a second one.
    const taken = typeof request.externalId === 'string' && byExternalId(request.externalId) !== undefined;
    if (taken) return { status: 409, message: `externalId ${String(request.externalId)} exists already` };

    const facts = drawFacts(request);
    const scenario = chosen.get(facts.externalId) ?? scenarioOf(facts.externalId) ?? options.scenario;
    const conduct = conducts[scenario];
    const transfer: Transfer = {
      facts,
      scenario,
      conduct,
      callbackUrl: typeof callbackUrl === 'string' ? callbackUrl : undefined,
      final: undefined,
      delivered: false,
      failingQueries: conduct.failingQueries ?? 0,
    };
    all.push(transfer);
    if (conduct.early) {
      await clock.track(finish(transfer, 'SUCCESS', clock.nowMs()));
    } else {
      const atMs = clock.nowMs() + options.finalAfterMs;
      clock.at(atMs, () => finish(transfer, conduct.outcome ?? 'SUCCESS', atMs));
    }
    // PENDING even if the callback has been there: the answer of a real service was under way by then.
    return { status: 201, data: pendingTransaction(facts) };
  }

  /** Resolves when the first attempt to announce it, if that is due now, has been answered. */
  async function finish(transfer: Transfer, outcome: 'SUCCESS' | 'FAILED', atMs: number): Promise<void> {
    const callback = callbackOf(transfer.facts, outcome, atMs);
    transfer.final = { callback, body: JSON.stringify(callback), atMs };
    transfer.delivered = false;
    const { silent, callbackAfterMs = 0, delivery = {} } = transfer.conduct;
    if (silent) return;
    if (callbackAfterMs === 0) await announce(transfer, delivery);
    else clock.at(atMs + callbackAfterMs, () => announce(transfer, delivery));
  }

  async function announce(transfer: Transfer, conduct: DeliveryConduct): Promise<void> {
    const { facts, final, callbackUrl: url } = transfer;
    if (final === undefined || url === undefined) return;
    const { body, callback } = final;
    const onAcknowledged = (): void => {
      // Once, and of the outcome that holds now: a resend must not flip it again, nor the first outcome pass for the last.
      if (transfer.final !== final || transfer.delivered) return;
      transfer.delivered = true;
      const { flipAfterMs } = transfer.conduct;
      if (flipAfterMs === undefined || callback.data.status === 'SUCCESS') return;
      const atMs = clock.nowMs() + flipAfterMs;
      clock.at(atMs, () => finish(transfer, 'SUCCESS', atMs));
    };
    const { id: transferId, externalId } = facts;
    await deliverCallback({ transferId, externalId, url, body, conduct, onAcknowledged }, terms);
  }

  function query(name: string): Result {
    const transfer = find(name);
    if (transfer === undefined) return { status: 404, message: `No transaction ${name}` };
    if (transfer.failingQueries > 0) {
      transfer.failingQueries -= 1;
      return { status: 500, message: 'The scenario wants this query to fail' };
    }
    const { facts, final, conduct } = transfer;
    const shown = final !== undefined && clock.nowMs() >= final.atMs + (conduct.queryLagsMs ?? 0);
    return { status: 200, data: shown ? final.callback.data : pendingTransaction(facts) };
  }

  async function resend(idOrExternalId: string): Promise<void> {
    const transfer = find(idOrExternalId);
    if (transfer?.final === undefined || transfer.callbackUrl === undefined) {
      throw invalidOption('idOrExternalId', 'of a transfer that is final and has a callback URL', idOrExternalId);
    }
    await clock.track(announce(transfer, {}));
  }

  function setScenario(externalId: string, scenario: TransferScenario): void {
    requireScenario('scenario', scenario);
    if (byExternalId(externalId) !== undefined) {
      throw invalidOption('externalId', 'of a transfer that has not been created yet', externalId);
    }
    chosen.set(externalId, scenario);
  }

  function transfers(): readonly SandboxTransfer[] {
    return all.map(({ facts: { id, externalId }, scenario, delivered, final }) => {
      const transfer = { id, externalId, scenario, delivered };
      if (final === undefined) return { ...transfer, state: 'pending', callback: undefined };
      // A copy: whoever changes it does not change what a query answers.
      return { ...transfer, state: final.callback.data.status, callback: structuredClone(final.callback) };
    });
  }

  return { create, query, resend, setScenario, transfers };
}
