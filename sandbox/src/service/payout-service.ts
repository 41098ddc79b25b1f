import { attemptCallback } from '../attempt/attempt.js';
import { invalidArgument, invalidSecret } from '../../../src/lib/checks.js';
import { CreationFault, parseCreation, type Creation } from './creation.js';
import { callbackSender, type SeriesState, type SenderParts, type PlannedAttempt } from './series.js';
import { judgeForgery, readFacts, type Forged } from './judgement.js';
import { callbackUrlFault, type ResolvedSandboxOptions } from './options.js';
import { requireScenario, scenarioOf, type SeriesBehaviour, type TransferScenario } from './scenarios.js';
import { pendingTransaction, seededFacts } from './facts.js';
import { TransferHistory, type FinalOutcome, type SandboxTransfer } from './history.js';
import { viewTransfers, type View, type PageQuery } from './view.js';

/** A response of the service: data, or the content of an error body. */
export type Result = { status: 200 | 201; data: object } | { status: 400 | 404 | 409 | 500; message: string };

/** Creates the transfers of one sandbox, makes them final on time, and reports them as their scenarios require. */
export class PayoutService {
  readonly #options: ResolvedSandboxOptions;
  readonly #parts: SenderParts;
  readonly #onChange: () => void;
  readonly #sendSeries: ReturnType<typeof callbackSender>;
  readonly #drawFacts: ReturnType<typeof seededFacts>;
  readonly #byId = new Map<string, TransferHistory>();
  readonly #byExternalId = new Map<string, TransferHistory>();
  readonly #chosen = new Map<string, TransferScenario>();

  /** Calls `onChange` when a transfer has changed. */
  constructor(options: ResolvedSandboxOptions, parts: SenderParts, onChange: () => void = () => undefined) {
    this.#options = options;
    this.#parts = parts;
    this.#onChange = onChange;
    this.#sendSeries = callbackSender({
      ...parts,
      record: (attempt) => {
        this.#byId.get(attempt.transferId)?.add({ type: 'attempt', atMs: attempt.sentAtMs, attempt });
        parts.record(attempt);
      },
    });
    this.#drawFacts = seededFacts(options.seed);
  }

  async create(body: unknown): Promise<Result> {
    let transfer: TransferHistory;
    try {
      transfer = this.#add(parseCreation(body, this.#options));
    } catch (error) {
      if (error instanceof CreationFault) return { status: error.status, message: error.message };
      throw error;
    }
    const { behaviour, facts } = transfer;
    const { clock } = this.#parts;
    if (behaviour.early) {
      await clock.track(this.#finish(transfer, 'SUCCESS', clock.nowMs()));
    } else {
      const atMs = transfer.finalDueMs;
      clock.at(atMs, () => this.#finish(transfer, behaviour.outcome ?? 'SUCCESS', atMs));
    }
    // PENDING even if the callback was delivered first: a real service would have sent this response before it.
    return { status: 201, data: pendingTransaction(facts) };
  }

  query(name: string): Result {
    const transfer = this.#find(name);
    if (transfer === undefined) return { status: 404, message: `No transaction ${name}.` };
    const { facts, final, behaviour } = transfer;
    const nowMs = this.#parts.clock.nowMs();
    if (transfer.failingQueries > 0) {
      transfer.failingQueries -= 1;
      transfer.addQuery(nowMs, undefined);
      return { status: 500, message: 'The scenario makes this query fail.' };
    }
    const isShown = final !== undefined && nowMs >= final.atMs + (behaviour.queryLagsMs ?? 0);
    const data = isShown ? final.callback.data : pendingTransaction(facts);
    transfer.addQuery(nowMs, data.status);
    return { status: 200, data };
  }

  async resend(idOrExternalId: string): Promise<void> {
    const [transfer, final] = this.#requireFinal(idOrExternalId);
    const { clock } = this.#parts;
    transfer.add({ type: 'resent', atMs: clock.nowMs() });
    await clock.track(this.#send(transfer, final, {}, clock.nowMs()));
  }

  async contradict(idOrExternalId: string): Promise<void> {
    const [transfer, final] = this.#requireFinal(idOrExternalId);
    const { clock } = this.#parts;
    const atMs = clock.nowMs();
    const other = transfer.finish(final.callback.data.status === 'SUCCESS' ? 'FAILED' : 'SUCCESS', atMs, atMs);
    await clock.track(this.#send(transfer, other, {}, atMs));
  }

  /** Sends a body as a forged sender, to the address of a transfer or another of its origin. No transfer changes. */
  async forge(idOrExternalId: string, url: string, body: string): Promise<Forged> {
    const own = this.#find(idOrExternalId)?.callbackUrl;
    if (own === undefined || !URL.canParse(url) || new URL(url).origin !== new URL(own).origin) {
      throw invalidSecret('url', 'a URL of the origin of the callback URL', url);
    }
    const { clock, timeoutMs, signal } = this.#parts;
    const response = await clock.track(attemptCallback(url, body, { timeoutMs, signal }));
    return judgeForgery(response, body, this.#byId.get(String(readFacts(body)?.id))?.sent ?? []);
  }

  /** Forgets all transfers and what is due for them. An attempt that is under way is the last one of its transfer. */
  clear(): void {
    this.#byId.clear();
    this.#byExternalId.clear();
    this.#parts.clock.forget();
    this.#onChange();
  }

  setScenario(externalId: string, scenario: TransferScenario): void {
    requireScenario(scenario);
    if (this.#byExternalId.has(externalId)) {
      throw invalidArgument('externalId', 'of a transfer that has not been created yet', externalId);
    }
    this.#chosen.set(externalId, scenario);
  }

  /** Returns all transfers, in the order of creation. */
  list(): readonly SandboxTransfer[] {
    return [...this.#byId.values()].map((transfer) => transfer.toPublic());
  }

  view(query: PageQuery): View {
    return viewTransfers(this.#byId, query);
  }

  #find(name: string): TransferHistory | undefined {
    return this.#byId.get(name) ?? this.#byExternalId.get(name);
  }

  /** Returns a transfer that can be reported, and its outcome. Throws INVALID_ARGUMENT if there is none. */
  #requireFinal(idOrExternalId: string): [TransferHistory, FinalOutcome] {
    const transfer = this.#find(idOrExternalId);
    if (transfer?.final === undefined || transfer.callbackUrl === undefined) {
      throw invalidArgument('idOrExternalId', 'of a transfer that is final and has a callback URL', idOrExternalId);
    }
    return [transfer, transfer.final];
  }

  #add(creation: Creation): TransferHistory {
    const given = creation.externalId;
    // The documentation requires a unique externalId (service §2.1) and does not show the response to a second one.
    if (given !== undefined && this.#byExternalId.has(given)) {
      throw new CreationFault(`externalId ${given} exists already.`, 409);
    }
    const facts = this.#drawFacts(creation);
    const { id, externalId } = facts;
    const scenario = this.#chosen.get(externalId) ?? scenarioOf(externalId) ?? this.#options.scenario;
    const createdAtMs = this.#parts.clock.nowMs();
    const transfer = new TransferHistory({
      place: this.#byId.size + 1,
      facts,
      scenario,
      createdAtMs,
      finalDueMs: createdAtMs + this.#options.finalAfterMs,
      callbackUrl: creation.callbackUrl ?? this.#defaultCallbackUrl(externalId),
      onChange: this.#onChange,
    });
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

  /** Makes the transfer final. If its first attempt is due now, resolves when that attempt has ended. */
  async #finish(transfer: TransferHistory, outcome: 'SUCCESS' | 'FAILED', atMs: number): Promise<void> {
    const final = transfer.finish(outcome, atMs, this.#parts.clock.nowMs());
    const { silent, callbackAfterMs = 0, series = {} } = transfer.behaviour;
    if (!silent) await this.#send(transfer, final, series, atMs + callbackAfterMs);
  }

  /** Delivers the callback if `atMs` has come, and otherwise schedules it. */
  async #send(transfer: TransferHistory, final: FinalOutcome, behaviour: SeriesBehaviour, atMs: number): Promise<void> {
    const { facts, callbackUrl: url } = transfer;
    if (url === undefined) return;
    const { clock } = this.#parts;
    const series = {
      transferId: facts.id,
      externalId: facts.externalId,
      url,
      body: final.body,
      behaviour,
      isCleared: () => !this.#byId.has(facts.id),
      onState: (state: SeriesState | undefined): void => {
        transfer.setSeries(series, state);
      },
      onAcknowledged: ({ number, plannedAtMs }: PlannedAttempt): void => {
        // Only the first acknowledgement of the current outcome counts: a resend must not flip it again.
        if (transfer.final !== final || transfer.delivered || series.isCleared()) return;
        transfer.delivered = true;
        transfer.add({ type: 'acknowledged', atMs: clock.nowMs(), number });
        this.#flipLater(transfer, final, plannedAtMs);
      },
    };
    if (atMs <= clock.nowMs()) return this.#sendSeries(series, atMs);
    series.onState({ next: { number: 1, plannedAtMs: atMs } });
    clock.at(atMs, () => this.#sendSeries(series, atMs));
  }

  #flipLater(transfer: TransferHistory, final: FinalOutcome, acknowledgedAtMs: number): void {
    const { flipAfterMs } = transfer.behaviour;
    if (flipAfterMs === undefined || final.callback.data.status === 'SUCCESS') return;
    const atMs = acknowledgedAtMs + flipAfterMs;
    this.#parts.clock.at(atMs, async () => {
      // `contradict` may already have reported the other outcome.
      if (transfer.final === final) await this.#finish(transfer, 'SUCCESS', atMs);
    });
  }
}
