import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { forkApp, kill } from '../support/child.js';
import type { AppMessage, AppQuestion, AppSize } from './messages.js';

const patienceMs = 30_000;

/** The process of app.ts, from outside. */
export class AppProcess {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #failed: Promise<never>;

  constructor(redisUrl: string) {
    this.#child = forkApp('../soak/app.ts', 'SOAK', { redisUrl });
    this.#exited = once(this.#child, 'exit');
    this.#failed = this.#exited.then(() => {
      throw new Error('The app has ended.');
    });
    this.#failed.catch(() => undefined);
  }

  /** The port that it listens on, once it does. To be called first. */
  async port(): Promise<number> {
    const message = await this.#nextMessage();
    if (!('port' in message)) throw new Error(`Expected the app to send its port, got ${JSON.stringify(message)}.`);
    return message.port;
  }

  /** Its size once the connections of the load are gone: only the one to Redis is left. */
  async settledSize(): Promise<AppSize> {
    for (const giveUpAt = performance.now() + patienceMs; ;) {
      const response = this.#nextMessage();
      this.#child.send('size' satisfies AppQuestion);
      const message = await response;
      if (!('size' in message)) throw new Error(`Expected the app to send its size, got ${JSON.stringify(message)}.`);
      const { connections, resources } = message.size;
      const isSettled = connections === 0 && (resources.TCPSocketWrap ?? 0) <= 1;
      if (isSettled || performance.now() > giveUpAt) return message.size;
      await pause(10);
    }
  }

  /** Has the app close everything. Resolves with whether its process then ends by itself. */
  async endsByItself(): Promise<boolean> {
    this.#child.send('end' satisfies AppQuestion);
    return Promise.race([this.#exited.then(() => true), pause(patienceMs, false, { ref: false })]);
  }

  async kill(): Promise<void> {
    await kill(this.#child);
  }

  async #nextMessage(): Promise<AppMessage> {
    const [message] = (await Promise.race([once(this.#child, 'message'), this.#failed])) as [AppMessage];
    return message;
  }
}
