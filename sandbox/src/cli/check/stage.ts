import { setTimeout as pause } from 'node:timers/promises';
import { attemptCallback, isAcknowledgement, isBroken, isSilent, startTogether } from '../../attempt/attempt.js';
import { toHeaders } from '../../attempt/headers.js';
import { isDigest, pick } from '../../attempt/signer.js';
import type { AttemptOptions, AttemptResponse } from '../../attempt/attempt.js';
import { toNameHeaders } from '../../services/fresh.js';
import { attemptsPerCallback, firstRetryMs } from '../../../../src/core/service.js';
import { UsageError } from '../../../../src/cli/arguments.js';
import { toUrl, type Endpoint } from '../endpoint-options.js';
import { runCommand, type Breakage, type Transfer } from './commands.js';
import type { Finding } from './played.js';
import type { Forgery, Step } from './rows.js';
import type { Service } from './service.js';

export interface StageOptions {
  readonly prepare: string | undefined;
  /** The address as someone calls it who has no secret. */
  readonly forgedUrl: string | undefined;
  readonly method: string | undefined;
  readonly isRealTime: boolean;
  /** How long a response may take. */
  readonly patienceMs: number;
  /** How long an app may be away. */
  readonly settleMs: number;
  readonly breakage: Breakage | undefined;
  /** Is called with a sentence about a row that is cut short. */
  readonly say: (sentence: string) => void;
}

type Headers = Readonly<Record<string, string>>;

/** One request, which can be made again. */
type Request = readonly [url: string, body: string, options: AttemptOptions & { readonly headers: Headers }];

/** After this many requests in a row without a response, the rest of a row would only take time. */
const mostSilent = 2;
/** How many times as fast as real time the pauses between attempts are. */
const fast = 100;
const dayMs = 86_400_000;
const betweenMs = 200;

/** Sends callbacks to the endpoint as the service does, row by row. */
export class Stage {
  readonly service: Service;
  readonly options: StageOptions;
  /** Why something cannot be sent here. */
  gaps: Service['gaps'];
  readonly forgeries: readonly Forgery[];
  /** The externalIds of every transfer that was created. */
  readonly ids: string[] = [];
  /** Whether the app has ended. */
  isOver = false;
  readonly #endpoint: Endpoint;
  /** The headers that prove the sender. */
  readonly #proofs: readonly string[];
  /** The first request that was acknowledged. */
  #acknowledged: Request | undefined;
  /** The first one of the row that broke its connection. */
  #broken: Request | undefined;
  #silentInARow = 0;

  private constructor(service: Service, endpoint: Endpoint, options: StageOptions) {
    this.service = service;
    this.options = options;
    this.gaps = service.gaps;
    this.#endpoint = endpoint;
    const changing = this.#findChanging();
    const constant = service.signer.canSign ? Object.keys(service.signer.sign(this.#makeOther())) : [];
    this.#proofs = changing.length > 0 ? changing : constant;
    const signed: Forgery[] = ['no signature', 'an empty signature', 'the signature of another secret'];
    if (changing.length > 0) signed.push('the signature of another callback');
    this.forgeries = this.#proofs.length > 0 ? signed : options.forgedUrl === undefined ? [] : ['no secret'];
  }

  /** Resolves with a stage that knows what the verifiers of the definition believe. */
  static async open(service: Service, endpoint: Endpoint, options: StageOptions): Promise<Stage> {
    const stage = new Stage(service, endpoint, options);
    const { signer, traits } = service;
    const transfer = service.invent('spelling');
    const { body } = transfer;
    const spelled = traits.isForm ? body : service.toBody('other spelling', transfer);
    const believes = async (text: string, headers: Headers): Promise<boolean> =>
      !signer.canSign ||
      signer.believes({ method: 'POST', url: stage.#toUrl(transfer), headers: toLower(headers) }, text);
    const isSpelled = await believes(spelled, signer.sign(spelled));
    const isOld = await believes(body, signer.signBefore(body, dayMs));
    const gaps: Record<string, string | undefined> = {
      ...(!isSpelled && { 'other spelling': 'The verifier of the definition does not take it, either.' }),
      ...(isOld && { 'an old timestamp': 'No signature of a time is known.' }),
      ...service.gaps,
      ...(stage.forgeries.length > 0 && { forged: undefined }),
    };
    // What its document excludes would only make the table longer.
    if (traits.isDocumented === true) for (const name of Object.keys(gaps)) gaps[name] &&= '';
    stage.gaps = { ...gaps, ...(options.breakage === undefined && { broken: '' }) };
    return stage;
  }

  beginRow(): void {
    this.#silentInARow = 0;
    this.#broken = undefined;
  }

  /** Why the rest of the row is skipped; `undefined` unless two requests in a row got no response. */
  get silence(): string | undefined {
    if (this.#silentInARow < mostSilent) return undefined;
    const seconds = this.options.patienceMs / 1_000;
    return `Two requests in a row got no response within ${seconds} s. The rest of this row is skipped.`;
  }

  /** Makes the app know a payout. Throws UsageError. */
  async prepare(transfer: Transfer): Promise<void> {
    this.ids.push(transfer.externalId);
    const { prepare } = this.options;
    if (prepare === undefined) return;
    const { isDone } = await runCommand(prepare, transfer);
    if (!isDone) throw new UsageError('Expected the command of --prepare to end with 0.');
  }

  /** Makes this many attempts, which begin together. */
  async sendTogether(transfer: Transfer, attempts: number): Promise<AttemptResponse[]> {
    const beforeBody = startTogether(attempts);
    return Promise.all(Array.from({ length: attempts }, () => this.send(transfer, undefined, { beforeBody })));
  }

  /**
   * Makes up to four attempts, until one is acknowledged, after those that have these `responses`. The first may have a
   * fault. A line that is bad is bad for each.
   */
  async announce(transfer: Transfer, fault?: Step['fault'], responses: readonly AttemptResponse[] = []) {
    const all = [...responses];
    while (all.length < attemptsPerCallback && !all.some(isAcknowledgement) && this.silence === undefined) {
      if (all.length > 0) await this.wait(firstRetryMs * 2 ** (all.length - 1));
      all.push(await this.send(transfer, all.length === 0 || fault === 'pieces' ? fault : undefined));
    }
    return all;
  }

  /** Waits for this many milliseconds of the service's time. */
  async wait(ms: number): Promise<void> {
    await pause(this.options.isRealTime ? ms : ms / fast);
  }

  /** Resolves with the response to a copy once it is acknowledged, or with the last one when the time is over. */
  insist(transfer: Transfer): Promise<AttemptResponse> {
    return this.#repeat(() => this.send(transfer));
  }

  /** After a broken connection: resolves with what it has cost. Then `isOver` tells whether the app has ended. */
  async findDamage(): Promise<Finding[]> {
    const [broken, acknowledged] = [this.#broken, this.#acknowledged];
    if (broken === undefined || acknowledged === undefined) return [];
    const again = (await this.#isThere(acknowledged)) ? await attemptCallback(...broken) : undefined;
    if (again !== undefined && !isBroken(again)) return [];
    if (again !== undefined && !isBroken(await attemptCallback(...acknowledged))) {
      return 'error' in again ? [['note', closes]] : [];
    }
    this.isOver = again === undefined || !(await this.#isThere(acknowledged));
    return [['wrong', this.isOver ? ended : restarts]];
  }

  /** Makes one attempt. */
  async send(transfer: Transfer, fault?: Step['fault'], more: AttemptOptions = {}): Promise<AttemptResponse> {
    const request = this.#toRequest(transfer, fault);
    const [url, body, own] = request;
    const response = await attemptCallback(url, body, { ...own, ...more });
    if (isAcknowledgement(response)) this.#acknowledged ??= request;
    if (isBroken(response) && fault !== 'broken') this.#broken ??= request;
    const before = this.silence;
    this.#silentInARow = isSilent(response) ? this.#silentInARow + 1 : 0;
    if (before === undefined && this.silence !== undefined) this.options.say(this.silence);
    return response;
  }

  async #isThere(request: Request): Promise<boolean> {
    return isAcknowledgement(await this.#repeat(() => attemptCallback(...request)));
  }

  async #repeat(attempt: () => Promise<AttemptResponse>): Promise<AttemptResponse> {
    const startedAt = performance.now();
    for (;;) {
      const response = await attempt();
      if (isAcknowledgement(response) || performance.now() - startedAt >= this.options.settleMs) return response;
      await pause(betweenMs);
    }
  }

  #toRequest(transfer: Transfer, fault: Step['fault']): Request {
    const { method, patienceMs: timeoutMs, forgedUrl } = this.options;
    const isForged = this.forgeries.some((each) => each === fault);
    const url = this.#toUrl(transfer);
    const options = {
      ...{ method, timeoutMs, pieces: fault === 'pieces', dropResponse: fault === 'response lost' },
      contentType: fault === 'text/plain' ? fault : this.service.contentType,
      headers: this.#toFaulty(transfer, fault),
    };
    // Half a body comes with the signature of the whole.
    const body = fault === 'half' ? this.service.cutShort(transfer) : transfer.body;
    return [isForged ? (forgedUrl ?? url) : url, body, options];
  }

  #toUrl({ externalId }: Pick<Transfer, 'externalId'>): string {
    return toUrl(this.#endpoint, externalId);
  }

  /** Returns the headers of the service: what was given replaces a signature, but not the name of an event. */
  #toHeaders({ body, externalId }: Pick<Transfer, 'body' | 'externalId'>): Headers {
    const given = toHeaders(this.#endpoint.callbackHeaders, Buffer.from(body));
    return {
      ...toLower(this.service.signer.sign(body)),
      ...toLower(given),
      ...toNameHeaders(this.service.traits.names, body, externalId),
    };
  }

  #toFaulty(transfer: Transfer, fault: Step['fault']): Headers {
    const right = this.#toHeaders(transfer);
    const { signer } = this.service;
    const isProof = (name: string): boolean => this.#proofs.includes(name);
    const isSigned = (name: string): boolean => Object.hasOwn(toLower(this.service.signer.sign(transfer.body)), name);
    if (fault === 'an old timestamp') return { ...right, ...toLower(signer.signBefore(transfer.body, dayMs)) };
    // The secret is in the address, or in a header.
    if (fault === 'no secret') return this.options.forgedUrl === this.#toUrl(transfer) ? {} : right;
    if (fault === 'no signature') return pick(right, (name) => !isProof(name));
    if (fault === 'an empty signature')
      return { ...right, ...Object.fromEntries(this.#proofs.map((name) => [name, ''])) };
    if (fault === 'the signature of another callback') {
      return { ...right, ...pick(this.#acknowledged?.[2].headers ?? {}, (name) => isProof(name) || isSigned(name)) };
    }
    if (fault !== 'the signature of another secret') return right;
    const body = this.#makeOther();
    const given = pick(this.#toHeaders({ ...transfer, body }), (name) => isProof(name) && !isSigned(name));
    return { ...right, ...given, ...toLower(signer.forge(transfer.body, body)) };
  }

  /** Returns the names of the headers that change with the body, and need a secret. */
  #findChanging(): string[] {
    const toOther = (): Headers => this.#toHeaders({ body: this.#makeOther(), externalId: '' });
    const named = Object.keys(toNameHeaders(this.service.traits.names, '', ''));
    const [one, other] = [toOther(), toOther()];
    return Object.keys(one).filter((name) => one[name] !== other[name] && !isDigest(name) && !named.includes(name));
  }

  /** Returns the body of a callback that is never sent. */
  #makeOther(): string {
    return this.service.invent('other').body;
  }
}

const ended =
  'Your app has ended, or is not reached any more: the callback of `success` is not acknowledged again. Anyone who ' +
  'sends such a body can end it.';
const restarts = 'Your app ends with such a body and restarts: anyone who sends it can keep your app away.';
const closes = 'Note: the connection was closed without a response, and your app was there immediately.';

const toLower = (headers: Headers): Headers =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
