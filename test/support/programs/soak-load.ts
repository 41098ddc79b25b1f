import { once } from 'node:events';
import { Agent, request, type ClientRequest, type IncomingMessage } from 'node:http';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import type { TransferCallback } from 'transfer-callbacks';

/** What a leak of the app of the soak would make grow. */
export interface SoakSize {
  /** Heap in use after garbage collection. */
  readonly heapBytes: number;
  readonly sockets: number;
  readonly timers: number;
  /** Listeners on the process, the server and the Redis client. */
  readonly listeners: number;
}

/** A callback that was sent until it was acknowledged. */
export interface Sent {
  readonly id: string;
  /** How often its handler was told to fail. */
  readonly failures: number;
}

const mark = '-fails-';

/** How often the handler of this external id fails before it succeeds. */
export function failuresIn(externalId: string): number {
  return Number(externalId.split(mark)[1]);
}

/** The service sends four times; here nothing but a defect needs more than the handler's failures and one. */
const attempts = 10;

const malformed: readonly (readonly [body: string, type: string])[] = [
  ['{"event":"transfer.success","data":', 'application/json'],
  ['[]', 'application/json'],
  ['{"event":"transfer.success","data":{"id":7}}', 'application/json'],
  ['event=transfer.success', 'application/x-www-form-urlencoded'],
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

  /**
   * Sends `count` callbacks, 32 at a time, then closes its connections. Half come with copies, failures, rubbish or a
   * hang-up.
   */
  async send(count: number): Promise<Sent[]> {
    const sent: Sent[] = [];
    let begun = 0;
    const work = async (): Promise<void> => {
      while (begun < count) {
        begun += 1;
        sent.push(await this.#sendOne());
      }
    };
    await Promise.all(Array.from({ length: 32 }, work));
    this.#agent.destroy();
    return sent;
  }

  async #sendOne(): Promise<Sent> {
    const turn = (this.#sent += 1);
    const kind = turn % 10;
    const failures = kind === 7 ? 1 + (turn % 2) : 0;
    const make = turn % 3 === 0 ? transferFailed : transferSucceeded;
    const callback = make({ externalId: `${crypto.randomUUID()}${mark}${failures}` });
    const body = JSON.stringify(callback);
    if (kind === 8) {
      const [rubbish, type] = malformed[Math.floor(turn / 10) % malformed.length] ?? ['', ''];
      const status = await this.#post(rubbish, type);
      if (status !== undefined && (status < 400 || status > 499)) this.surprises.push(`a malformed body got ${status}`);
    }
    if (kind === 9) await this.#hangUp(body, turn % 20 === 9);
    if (kind === 6) await Promise.all([1, 2, 3].map(() => this.#post(body)));
    await this.#sendUntilAcknowledged(body);
    if (kind === 5) await this.#sendUntilAcknowledged(body);
    return { id: (callback satisfies TransferCallback).data.id, failures };
  }

  async #sendUntilAcknowledged(body: string): Promise<void> {
    for (let attempt = 0; attempt < attempts; attempt += 1) {
      const status = await this.#post(body);
      if (status === 200) return;
      if (status !== undefined && status !== 500) this.surprises.push(`a callback got ${status}`);
    }
    this.surprises.push(`a callback was not acknowledged in ${attempts} attempts`);
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
  async #hangUp(body: string, inTheMiddle: boolean): Promise<void> {
    const bytes = Buffer.from(body);
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
