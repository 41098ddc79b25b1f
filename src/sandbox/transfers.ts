import type { TransferCallback } from '../core/callback.js';
import { invalidArgument } from '../core/checks.js';
import { CreationFault, parseCreation, type Creation } from './creation.js';
import { callbackDeliverer, type DeliveryTerms, type PlannedAttempt } from './deliveries.js';
import { callbackUrlFault, requireScenario, type ResolvedSandboxOptions } from './options.js';
import { conducts, scenarioOf, type Conduct, type DeliveryConduct, type TransferScenario } from './scenarios.js';
import { callbackOf, pendingTransaction, seededFacts, type SandboxFacts } from './transactions.js';

/** A transfer as the sandbox knows it. `pending` is a word of the sandbox: the service documents none. */
export type SandboxTransfer = {
  readonly id: string;
  readonly externalId: string;
  readonly scenario: TransferScenario;
  /** By the sandbox's clock, in milliseconds of Unix time, like every time here. */
  readonly createdAtMs: number;
  /** Where its callbacks go; `undefined` if it is announced to nobody. */
  readonly callbackUrl: string | undefined;
  /** Whether `callback` has been acknowledged with 2xx. */
  readonly delivered: boolean;
  /** The attempt that is planned next, if one is. */
  readonly next: PlannedAttempt | undefined;
} & (
  | { readonly state: 'pending'; readonly finalAtMs: undefined; readonly callback: undefined }
  /** `callback` is the outcome, whether or not the scenario delivers it. */
  | { readonly state: 'SUCCESS' | 'FAILED'; readonly finalAtMs: number; readonly callback: TransferCallback }
);

/** How the service responds: with data, or with an error body. */
export type Result = { status: 200 | 201; data: object } | { status: 400 | 404 | 409 | 500; message: string };

interface Transfer {
  readonly facts: SandboxFacts;
  readonly scenario: TransferScenario;
  readonly conduct: Conduct;
  readonly createdAtMs: number;
  readonly callbackUrl: string | undefined;
  /** Its bytes are fixed with it: every attempt, and a later resend, sends the same. */
  final: { readonly callback: TransferCallback; readonly body: string; readonly atMs: number } | undefined;
  delivered: boolean;
  failingQueries: number;
  /** By delivery: a resend may overlap with the first one. */
  readonly planned: Map<object, PlannedAttempt>;
}

/** The transfers of one sandbox: created, final after a while, and then announced as their scenarios want it. */
export class SandboxTransfers {
  readonly #options: ResolvedSandboxOptions;
  readonly #terms: DeliveryTerms;
  readonly #deliver: ReturnType<typeof callbackDeliverer>;
  readonly #drawFacts: ReturnType<typeof seededFacts>;
  readonly #byId = new Map<string, Transfer>();
  readonly #byExternalId = new Map<string, Transfer>();
  readonly #chosen = new Map<string, TransferScenario>();

  constructor(options: ResolvedSandboxOptions, terms: DeliveryTerms) {
    this.#options = options;
    this.#terms = terms;
    this.#deliver = callbackDeliverer(terms);
    this.#drawFacts = seededFacts(options.seed);
  }

  async create(body: unknown): Promise<Result> {
    let transfer: Transfer;
    try {
      transfer = this.#add(parseCreation(body, this.#options));
    } catch (error) {
      if (error instanceof CreationFault) return { status: error.status, message: error.message };
      throw error;
    }
    const { conduct, facts } = transfer;
    const { clock } = this.#terms;
    if (conduct.early) {
      await clock.track(this.#finish(transfer, 'SUCCESS', clock.nowMs()));
    } else {
      const atMs = clock.nowMs() + this.#options.finalAfterMs;
      clock.at(atMs, () => this.#finish(transfer, conduct.outcome ?? 'SUCCESS', atMs));
    }
    // PENDING even if the callback was delivered before: the response of a real service was under way by then.
    return { status: 201, data: pendingTransaction(facts) };
  }

  query(name: string): Result {
    const transfer = this.#find(name);
    if (transfer === undefined) return { status: 404, message: `No transaction ${name}.` };
    if (transfer.failingQueries > 0) {
      transfer.failingQueries -= 1;
      return { status: 500, message: 'The scenario wants this query to fail.' };
    }
    const { facts, final, conduct } = transfer;
    const shown = final !== undefined && this.#terms.clock.nowMs() >= final.atMs + (conduct.queryLagsMs ?? 0);
    return { status: 200, data: shown ? final.callback.data : pendingTransaction(facts) };
  }

  async resend(idOrExternalId: string): Promise<void> {
    const transfer = this.#find(idOrExternalId);
    if (transfer?.final === undefined || transfer.callbackUrl === undefined) {
      throw invalidArgument('idOrExternalId', 'of a transfer that is final and has a callback URL', idOrExternalId);
    }
    const { clock } = this.#terms;
    await clock.track(this.#announce(transfer, {}, clock.nowMs()));
  }

  setScenario(externalId: string, scenario: TransferScenario): void {
    requireScenario('scenario', scenario);
    if (this.#byExternalId.has(externalId)) {
      throw invalidArgument('externalId', 'of a transfer that has not been created yet', externalId);
    }
    this.#chosen.set(externalId, scenario);
  }

  list(): readonly SandboxTransfer[] {
    return [...this.#byId.values()].map(toPublic);
  }

  #find(name: string): Transfer | undefined {
    return this.#byId.get(name) ?? this.#byExternalId.get(name);
  }

  #add(creation: Creation): Transfer {
    const given = creation.externalId;
    // It is documented to be unique (service §2.1), but not what happens to a second one.
    if (given !== undefined && this.#byExternalId.has(given)) {
      throw new CreationFault(`externalId ${given} exists already.`, 409);
    }
    const facts = this.#drawFacts(creation);
    const { id, externalId } = facts;
    const scenario = this.#chosen.get(externalId) ?? scenarioOf(externalId) ?? this.#options.scenario;
    const conduct = conducts[scenario];
    const transfer: Transfer = {
      facts,
      scenario,
      conduct,
      createdAtMs: this.#terms.clock.nowMs(),
      callbackUrl: creation.callbackUrl ?? this.#defaultCallbackUrl(externalId),
      final: undefined,
      delivered: false,
      failingQueries: conduct.failingQueries ?? 0,
      planned: new Map(),
    };
    this.#byId.set(id, transfer);
    this.#byExternalId.set(externalId, transfer);
    return transfer;
  }

  #defaultCallbackUrl(externalId: string): string | undefined {
    const { callbackUrl, allowOtherHosts } = this.#options;
    if (typeof callbackUrl !== 'function') return callbackUrl;
    const url = callbackUrl(externalId);
    const fault = callbackUrlFault(url, allowOtherHosts);
    if (fault !== undefined) throw new CreationFault(`Expected \`callbackUrl\` to return ${fault}.`);
    return url;
  }

  /** Resolves when the first attempt to announce it, if that is due now, has been answered. */
  async #finish(transfer: Transfer, outcome: 'SUCCESS' | 'FAILED', atMs: number): Promise<void> {
    const callback = callbackOf(transfer.facts, outcome, atMs);
    transfer.final = { callback, body: JSON.stringify(callback), atMs };
    transfer.delivered = false;
    const { silent, callbackAfterMs = 0, delivery = {} } = transfer.conduct;
    if (!silent) await this.#announce(transfer, delivery, atMs + callbackAfterMs);
  }

  /** Delivers the callback at `atMs`, or leaves that to the clock. */
  async #announce(transfer: Transfer, conduct: DeliveryConduct, atMs: number): Promise<void> {
    const { facts, final, callbackUrl: url, planned } = transfer;
    if (final === undefined || url === undefined) return;
    const delivery = {
      ...{ transferId: facts.id, externalId: facts.externalId, url, body: final.body, conduct },
      onPlanned(next: PlannedAttempt | undefined): void {
        if (next === undefined) planned.delete(delivery);
        else planned.set(delivery, next);
      },
      onAcknowledged: (plannedAtMs: number): void => {
        // Only the first acknowledgement of the current outcome counts: a resend must not flip it again.
        if (transfer.final !== final || transfer.delivered) return;
        transfer.delivered = true;
        this.#flipLater(transfer, plannedAtMs);
      },
    };
    if (atMs <= this.#terms.clock.nowMs()) return this.#deliver(delivery, atMs);
    delivery.onPlanned({ number: 1, plannedAtMs: atMs });
    this.#terms.clock.at(atMs, () => this.#deliver(delivery, atMs));
  }

  #flipLater(transfer: Transfer, acknowledgedAtMs: number): void {
    const { flipAfterMs } = transfer.conduct;
    if (flipAfterMs === undefined || transfer.final?.callback.data.status === 'SUCCESS') return;
    const atMs = acknowledgedAtMs + flipAfterMs;
    this.#terms.clock.at(atMs, () => this.#finish(transfer, 'SUCCESS', atMs));
  }
}

function toPublic(transfer: Transfer): SandboxTransfer {
  const { facts, scenario, createdAtMs, callbackUrl, delivered, final, planned } = transfer;
  const [next] = [...planned.values()].sort((a, b) => a.plannedAtMs - b.plannedAtMs);
  const { id, externalId } = facts;
  const known = { id, externalId, scenario, createdAtMs, callbackUrl, delivered, next };
  if (final === undefined) return { ...known, state: 'pending', finalAtMs: undefined, callback: undefined };
  const { callback, atMs } = final;
  // A copy: a change to it must not change what a query responds.
  return { ...known, state: callback.data.status, finalAtMs: atMs, callback: structuredClone(callback) };
}
