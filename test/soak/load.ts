import { once } from 'node:events';
import { Agent, request, type ClientRequest, type IncomingMessage } from 'node:http';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import type { TransferCallback } from 'transfer-callbacks';
import { externalIdWith } from './messages.js';

/** A callback that was sent until it was acknowledged. */
export interface Sent {
  readonly id: string;
  /** How often its handler was told to fail. */
  readonly failures: number;
  /** How many deliveries got a response. */
  readonly responded: number;
  /** How many deliveries got none, because the connection broke. The app may have read them. */
  readonly broken: number;
}

/** The service sends four times; here nothing but a defect needs more than the handler's failures and one. */
const attempts = 10;

const malformed: readonly { readonly body: string; readonly type?: string }[] = [
  { body: '{"event":"transfer.success","data":' },
  { body: '[]' },
  { body: '{"event":"transfer.success","data":{"id":7}}' },
  { body: 'event=transfer.success', type: 'application/x-www-form-urlencoded' },
];

/** Sends callbacks as the service does, and as it should not, over connections that are kept alive. */
export class Load {
  readonly #url: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64 });
  /** Responses that no delivery should get. */
  readonly surprises: string[] = [];
  #sent = 0;

  constructor(url: string) {
    this.#url = url;
  }

  /** Sends `count` callbacks, `concurrency` at a time. One in two comes with copies, failures, rubbish or a hang-up. */
  async send(count: number, concurrency = 32): Promise<Sent[]> {
    const sent: Sent[] = [];
    let next = 0;
    const work = async (): Promise<void> => {
      while (next < count) {
        next += 1;
        sent.push(await this.#sendOne());
      }
    };
    await Promise.all(Array.from({ length: Math.min(concurrency, count) }, work));
    return sent;
  }

  /** Closes the connections that are kept alive. */
  close(): void {
    this.#agent.destroy();
  }

  async #sendOne(): Promise<Sent> {
    const turn = (this.#sent += 1);
    const kind = turn % 10;
    const failures = kind === 7 ? 1 + (turn % 2) : 0;
    const make = turn % 3 === 0 ? transferFailed : transferSucceeded;
    const callback = make({ externalId: externalIdWith(failures) });
    const statuses: (number | undefined)[] = [];
    if (kind === 8) await this.#sendMalformed(turn);
    if (kind === 9) {
      await this.#hangUp(callback, turn % 20 === 9);
      statuses.push(undefined);
    }
    if (kind === 6) statuses.push(...(await Promise.all([1, 2, 3].map(() => this.#deliver(callback)))));
    statuses.push(...(await this.#sendUntilAcknowledged(callback)));
    if (kind === 5) statuses.push(...(await this.#sendUntilAcknowledged(callback)));
    const responded = statuses.filter((status) => status !== undefined).length;
    return { id: callback.data.id, failures, responded, broken: statuses.length - responded };
  }

  async #sendUntilAcknowledged(callback: TransferCallback): Promise<(number | undefined)[]> {
    const statuses: (number | undefined)[] = [];
    while (statuses.length < attempts) {
      const status = await this.#deliver(callback);
      statuses.push(status);
      if (status === 200) return statuses;
      if (status !== undefined && status !== 500) this.surprises.push(`a callback got ${status}`);
    }
    this.surprises.push(`a callback was not acknowledged in ${attempts} attempts`);
    return statuses;
  }

  async #deliver(callback: TransferCallback): Promise<number | undefined> {
    return this.#post(JSON.stringify(callback));
  }

  async #sendMalformed(turn: number): Promise<void> {
    const { body, type } = malformed[Math.floor(turn / 10) % malformed.length] ?? { body: '' };
    const status = await this.#post(body, type);
    if (status !== undefined && (status < 400 || status > 499)) this.surprises.push(`a malformed body got ${status}`);
  }

  /** Resolves with the status, or with `undefined` where the connection broke. */
  async #post(body: string, type = 'application/json'): Promise<number | undefined> {
    const sent = this.#open(Buffer.byteLength(body), type);
    sent.end(body);
    try {
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      response.resume();
      await once(response, 'end');
      return response.statusCode;
    } catch {
      // The server may close a connection that was kept alive at the moment that it is used again.
      return undefined;
    }
  }

  /** Breaks off in the middle of the body, or when all of it was written and no response has come. */
  async #hangUp(callback: TransferCallback, inTheMiddle: boolean): Promise<void> {
    const bytes = Buffer.from(JSON.stringify(callback));
    const sent = this.#open(bytes.length, 'application/json');
    // Not `once` of node:events, which rejects at the error that breaking off is.
    const closed = new Promise((resolve) => sent.on('error', () => undefined).once('close', resolve));
    await new Promise((resolve) => sent.write(inTheMiddle ? bytes.subarray(0, 100) : bytes, resolve));
    sent.destroy();
    await closed;
  }

  #open(length: number, type: string): ClientRequest {
    const headers = { 'Content-Type': type, 'Content-Length': length };
    return request(this.#url, { method: 'POST', agent: this.#agent, headers });
  }
}
