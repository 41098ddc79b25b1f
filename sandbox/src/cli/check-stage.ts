import { setTimeout as pause } from 'node:timers/promises';
import { attemptCallback, isAcknowledgement, type AttemptOptions, type AttemptResponse } from '../attempt/attempt.js';
import type { TransferSandbox } from '../index.js';
import { attemptsPerCallback, firstRetryMs } from '../../../src/core/service.js';
import { UsageError } from '../../../src/cli/arguments.js';
import { createTransfer } from './create-transfer.js';
import { requireUrl, type Endpoint } from './endpoint-options.js';
import { runCommand, type NamedTransfer } from './check-commands.js';

/** A transfer that the service knows, and its callback. */
export interface Announced extends NamedTransfer {
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** One attempt, as the judge of `scenarios.ts` sees it. */
export interface Attempt {
  readonly number: number;
  readonly body: string;
  readonly contentType: string;
  readonly response: AttemptResponse;
}

/** What may be wrong with an attempt. */
export type Fault = Pick<AttemptOptions, 'contentType' | 'pieces' | 'dropResponse'> & { readonly body?: string };

/** How long the service waits is not documented: an endpoint may take its time. */
const timeoutMs = 30_000;

/** How many times as fast as real time the pauses between attempts are. */
const fast = 100;

/** Creates transfers at a sandbox, and sends callbacks to the endpoint as the service does. */
export class Stage {
  readonly strangerUrl: string | undefined;
  readonly isRealTime: boolean;
  readonly #sandbox: TransferSandbox;
  readonly #endpoint: Endpoint;
  readonly #prepare: string | undefined;

  constructor(
    sandbox: TransferSandbox,
    endpoint: Endpoint,
    options: { prepare: string | undefined; strangerUrl: string | undefined; isRealTime: boolean },
  ) {
    this.#sandbox = sandbox;
    this.#endpoint = endpoint;
    this.#prepare = options.prepare;
    this.strangerUrl = options.strangerUrl;
    this.isRealTime = options.isRealTime;
  }

  /** Makes the app know a payout. Throws UsageError. */
  async prepare(transfer: NamedTransfer): Promise<void> {
    if (this.#prepare === undefined) return;
    const { isDone } = await runCommand(this.#prepare, transfer);
    if (!isDone) throw new UsageError('Expected the command of --prepare to end with 0.');
  }

  /** Creates a transfer that is final immediately. An app that asks the service finds it there. */
  async create(name: string, status: NamedTransfer['status'] = 'SUCCESS'): Promise<Announced> {
    const externalId = `check-${name}-${crypto.randomUUID()}`;
    await this.prepare({ externalId, status });
    this.#sandbox.setScenario(externalId, status === 'FAILED' ? 'failed' : 'success');
    await createTransfer(this.#sandbox, { externalId });
    await this.#sandbox.advance(0);
    const { apiKey, apiSecret } = this.#sandbox.keys.valid;
    const response = await fetch(`${this.#sandbox.baseUrl}/transactions/${externalId}`, {
      headers: { 'x-api-key': apiKey, 'x-api-secret': apiSecret },
    });
    const { data } = (await response.json()) as { data: Record<string, unknown> };
    return { externalId, status, event: status === 'FAILED' ? 'transfer.failed' : 'transfer.success', data };
  }

  /** Makes one attempt. */
  async send({ externalId, event, data }: Omit<Announced, 'status'>, number = 1, fault: Fault = {}): Promise<Attempt> {
    const { body = JSON.stringify({ event, data }), contentType = 'application/json', ...others } = fault;
    const { callbackUrl, callbackHeaders: headers, allowOtherHosts } = this.#endpoint;
    const url = typeof callbackUrl === 'function' ? callbackUrl(externalId) : String(callbackUrl);
    requireUrl('what callbackUrl returns', url, allowOtherHosts);
    const response = await attemptCallback(url, body, { ...others, contentType, headers, timeoutMs });
    return { number, body, contentType, response };
  }

  /** Makes up to four attempts, until one is acknowledged. The first may have a fault. */
  async announce(transfer: Announced, fault?: Fault): Promise<Attempt[]> {
    return this.retry(transfer, [await this.send(transfer, 1, fault)]);
  }

  /** Makes the other attempts. */
  async retry(transfer: Announced, attempts: readonly Attempt[]): Promise<Attempt[]> {
    const all = [...attempts];
    while (all.length < attemptsPerCallback && !all.some(({ response }) => isAcknowledgement(response))) {
      await this.wait(firstRetryMs * 2 ** (all.length - 1));
      all.push(await this.send(transfer, all.length + 1));
    }
    return all;
  }

  /** Waits for so many milliseconds of the service's time. */
  async wait(ms: number): Promise<void> {
    await pause(this.isRealTime ? ms : ms / fast);
  }

  /** Sends a callback as someone who has no secret. */
  sendAsStranger(url: string, callback: object): Promise<AttemptResponse> {
    return attemptCallback(url, JSON.stringify(callback), { timeoutMs });
  }
}
