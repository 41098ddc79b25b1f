import { setTimeout as pause } from 'node:timers/promises';
import { attemptCallback, isAcknowledgement, isSilent } from '../../attempt/attempt.js';
import type { AttemptHeaders } from '../../attempt/headers.js';
import { addSignature } from '../../attempt/signer.js';
import type { AttemptOptions, AttemptResponse } from '../../attempt/attempt.js';
import { startTogether } from '../../attempt/start-together.js';
import { attemptsPerCallback, firstRetryMs } from '../../../../src/core/service.js';
import { UsageError } from '../../../../src/cli/arguments.js';
import { toUrl, type Endpoint } from '../endpoint-options.js';
import { runCommand, type NamedTransfer } from './commands.js';
import type { Announced, CheckedService, FinalStatus } from './service.js';

/** What may be wrong with an attempt. */
export type Fault = Pick<AttemptOptions, 'contentType' | 'pieces' | 'dropResponse'> & { readonly body?: string };

export interface StageOptions {
  readonly prepare: string | undefined;
  readonly strangerUrl: string | undefined;
  readonly isRealTime: boolean;
  /** How long a response may take. */
  readonly patienceMs: number;
  /** Is called with a sentence about a row that is cut short. */
  readonly say: (sentence: string) => void;
}

/** After this many requests in a row without a response, the rest of a row would only take time. */
const mostSilent = 2;

/** How many times as fast as real time the pauses between attempts are. */
const fast = 100;

/** Sends callbacks to the endpoint as the service does, row by row. */
export class Stage {
  readonly service: CheckedService;
  readonly #endpoint: Endpoint;
  readonly #options: StageOptions;
  readonly #headers: AttemptHeaders;
  #silentInARow = 0;

  constructor(service: CheckedService, endpoint: Endpoint, options: StageOptions) {
    this.service = service;
    this.#endpoint = endpoint;
    this.#options = options;
    this.#headers = addSignature(endpoint.callbackHeaders, (body) => service.sign(body));
  }

  /** Where a stranger sends a callback. The address of a service that signs is no secret. */
  findStrangerUrl({ externalId }: NamedTransfer): string | undefined {
    const { strangerUrl } = this.#options;
    return strangerUrl === undefined && this.service.isSigned ? toUrl(this.#endpoint, externalId) : strangerUrl;
  }

  get isRealTime(): boolean {
    return this.#options.isRealTime;
  }

  beginRow(): void {
    this.#silentInARow = 0;
  }

  /** Why the rest of the row is skipped; `undefined` unless two requests in a row got no response. */
  get silence(): string | undefined {
    if (this.#silentInARow < mostSilent) return undefined;
    const seconds = this.#options.patienceMs / 1_000;
    return `Two requests in a row got no response within ${seconds} s. The rest of this row is skipped.`;
  }

  /** Makes the app know a payout. Throws UsageError. */
  async prepare(transfer: NamedTransfer): Promise<void> {
    const { prepare } = this.#options;
    if (prepare === undefined) return;
    const { isDone } = await runCommand(prepare, transfer);
    if (!isDone) throw new UsageError('Expected the command of --prepare to end with 0.');
  }

  /** Creates a transfer that has ended, and makes the app know it. */
  async create(name: string, status: FinalStatus): Promise<Announced> {
    const transfer = await this.service.create(name, status);
    await this.prepare(transfer);
    return transfer;
  }

  /** Makes one attempt. */
  async send(transfer: Pick<Announced, 'externalId' | 'body'>, fault: Fault = {}): Promise<AttemptResponse> {
    return this.#attempt(transfer, fault);
  }

  /** Makes this many attempts, which begin together. */
  async sendTogether(transfer: Announced, attempts: number): Promise<AttemptResponse[]> {
    const beforeBody = startTogether(attempts);
    return Promise.all(Array.from({ length: attempts }, () => this.#attempt(transfer, { beforeBody })));
  }

  /** Makes up to four attempts, until one is acknowledged. The first may have a fault. */
  async announce(transfer: Announced, fault?: Fault): Promise<AttemptResponse[]> {
    return this.retry(transfer, [await this.send(transfer, fault)]);
  }

  /** Makes the other attempts. */
  async retry(transfer: Announced, responses: readonly AttemptResponse[]): Promise<AttemptResponse[]> {
    const all = [...responses];
    while (all.length < attemptsPerCallback && !all.some(isAcknowledgement) && this.silence === undefined) {
      await this.wait(firstRetryMs * 2 ** (all.length - 1));
      all.push(await this.send(transfer));
    }
    return all;
  }

  /** Waits for this many milliseconds of the service's time. */
  async wait(ms: number): Promise<void> {
    await pause(this.isRealTime ? ms : ms / fast);
  }

  /** Sends a callback as someone who has no secret. */
  async sendAsStranger(url: string, { body }: Announced): Promise<AttemptResponse> {
    const { contentType } = this.service;
    return this.#note(await attemptCallback(url, body, { contentType, timeoutMs: this.#options.patienceMs }));
  }

  async #attempt(
    { externalId, body: whole }: Pick<Announced, 'externalId' | 'body'>,
    { body = whole, ...others }: Fault & Pick<AttemptOptions, 'beforeBody'>,
  ): Promise<AttemptResponse> {
    const { contentType } = this.service;
    const own = { contentType, ...others, headers: this.#headers, timeoutMs: this.#options.patienceMs };
    return this.#note(await attemptCallback(toUrl(this.#endpoint, externalId), body, own));
  }

  #note(response: AttemptResponse): AttemptResponse {
    const before = this.silence;
    this.#silentInARow = isSilent(response) ? this.#silentInARow + 1 : 0;
    if (before === undefined && this.silence !== undefined) this.#options.say(this.silence);
    return response;
  }
}
