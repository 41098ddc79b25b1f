import { spawn, spawnSync } from 'node:child_process';

export type FinalStatus = 'SUCCESS' | 'FAILED' | 'REVERSED';

/** A transfer. A command gets it as $ID, $STATUS, $TRANSFER_ID, $AMOUNT, $CURRENCY and $BODY. */
export interface Transfer {
  readonly externalId: string;
  readonly status: FinalStatus;
  /** The id of the service. */
  readonly id: string;
  /** `undefined` if the callbacks of the service have none. */
  readonly amount: number | string | undefined;
  readonly currency: string | undefined;
  /** The body of its first callback. */
  readonly body: string;
}

/** A command that hangs must not hang the check. */
const longestMs = 60_000;

function settingsFor({ externalId, status, id, amount, currency, body }: Transfer, timeout = longestMs) {
  const money = { AMOUNT: String(amount ?? ''), CURRENCY: currency ?? '' };
  // A string of the environment has no NUL.
  const named = { ID: externalId, STATUS: status, TRANSFER_ID: id, BODY: body.replaceAll('\0', ''), ...money };
  return { shell: true, timeout, env: { ...process.env, ...named } } as const;
}

/** Resolves with what a command of the user printed, and whether it ended with 0 in time. */
export function runCommand(
  command: string,
  transfer: Transfer,
  timeoutMs = longestMs,
  stderr: 'inherit' | 'ignore' = 'inherit',
): Promise<{ isDone: boolean; output: string }> {
  return new Promise((resolve) => {
    const child = spawn(command, { ...settingsFor(transfer, timeoutMs), stdio: ['ignore', 'pipe', stderr] });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    // A shell that cannot be started emits no `close`.
    child.on('error', () => {
      resolve({ isDone: false, output });
    });
    child.on('exit', (_code, signal) => {
      // What a killed shell has started would keep its output open.
      if (signal !== null) child.stdout.destroy();
    });
    child.on('close', (code) => {
      resolve({ isDone: code === 0, output: output.trim() });
    });
  });
}

/** Keeps the app from booking, and fixes it again, whatever ends this process. */
export class Breakage {
  readonly #break: string;
  readonly #mend: string;
  #running: Promise<unknown> = Promise.resolve();
  #broken: Transfer | undefined;

  constructor(breakCommand: string, mendCommand: string) {
    this.#break = breakCommand;
    this.#mend = mendCommand;
    process.on('exit', () => {
      this.#mendAtExit();
    });
  }

  get isMended(): boolean {
    return this.#broken === undefined;
  }

  /** Resolves when no command runs: a --break that is still under way would undo the --mend at exit. */
  async idle(): Promise<void> {
    await this.#running;
  }

  /** Resolves with whether the command ended with 0. If it did not, it may have broken something nevertheless. */
  break(transfer: Transfer): Promise<boolean> {
    this.#broken = transfer;
    return this.#run(this.#break, transfer);
  }

  /** Resolves with whether the command ended with 0. */
  async mend(transfer: Transfer): Promise<boolean> {
    if (await this.#run(this.#mend, transfer)) this.#broken = undefined;
    return this.isMended;
  }

  async #run(command: string, transfer: Transfer): Promise<boolean> {
    const running = runCommand(command, transfer);
    this.#running = running;
    return (await running).isDone;
  }

  #mendAtExit(): void {
    if (this.#broken === undefined) return;
    const { status } = spawnSync(this.#mend, { ...settingsFor(this.#broken), stdio: ['ignore', 'ignore', 'inherit'] });
    if (status === 0) return;
    process.stderr.write('transfer-sandbox: --mend failed. What --break has broken may still be broken.\n');
    process.exitCode = 2;
  }
}
