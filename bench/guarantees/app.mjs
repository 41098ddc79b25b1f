// A server under test whose handler waits until it is told how to end.
import { request } from 'node:http';
import { callbackText, path } from '../callback.mjs';
import { startNode, stop } from '../support/processes.mjs';

/** When the service sends a callback again for the first time. Its patience is not documented: a later response is none. */
export const firstRetryMs = 30_000;
/** How long a handler may take to begin, on a busy machine. */
const patienceMs = 20_000;

/** A callback as the service sends it, with an id that was never sent before. */
export function newCallback(changes = {}) {
  const { event, data } = JSON.parse(callbackText(crypto.randomUUID()));
  return { event, data: { ...data, ...changes } };
}

export class App {
  #process;
  #runs = new Map();
  #verdicts = new Map();

  /** Starts `file` of servers/ with its arguments. */
  static async start({ file, args }, env) {
    // Some rivals print every lost connection.
    return new App(await startNode(`servers/${file}`, args, { env: { ...env, HANDLER: 'told' }, quiet: true }));
  }

  constructor(process) {
    this.#process = process;
    process.child.on('message', ({ handling }) => {
      this.#runs.set(handling, this.runs(handling) + 1);
      if (!this.#verdicts.has(handling)) this.tell(handling, 'succeed');
      else if (this.#verdicts.get(handling) !== 'wait') this.tell(handling, this.#verdicts.get(handling));
    });
  }

  /** How often the handler was run for this id. */
  runs(id) {
    return this.#runs.get(id) ?? 0;
  }

  /** From now on the handler of this id ends like this: `succeed` (the default), `fail`, or not until `tell`: `wait`. */
  expect({ data }, verdict) {
    this.#verdicts.set(data.id, verdict);
  }

  /** Ends the running handler of this id. */
  tell(id, how) {
    this.#process.child.send({ id, how });
  }

  /** Makes one attempt. Resolves with the status, or with `undefined` where there was no response in time. */
  deliver(callback, timeout = firstRetryMs) {
    return new Promise((resolve) => {
      const options = { port: this.#process.ready, path, method: 'POST', agent: false, timeout };
      const sent = request({ ...options, headers: { 'Content-Type': 'application/json' } }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      sent.on('timeout', () => sent.destroy());
      sent.on('close', () => resolve(undefined)).on('error', () => undefined);
      sent.end(JSON.stringify(callback));
    });
  }

  /** Makes one attempt whose handler waits. Resolves with the response to come when the handler has begun. */
  async deliverAndHold(callback) {
    this.expect(callback, 'wait');
    const status = this.deliver(callback, 4 * firstRetryMs);
    const giveUpAt = performance.now() + patienceMs;
    while (this.runs(callback.data.id) === 0) {
      if (performance.now() > giveUpAt) throw new Error('The handler did not begin.');
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return { status };
  }

  signal(signal) {
    this.#process.child.kill(signal);
  }

  /** Resolves with whether the process has ended by itself, or does so within a second. */
  async hasEnded() {
    const ended = this.#process.failed.catch(() => true);
    return Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 1_000, false))]);
  }

  async kill() {
    await stop(this.#process);
  }
}
