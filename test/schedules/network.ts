import type { Budget, Choice } from './choice.js';
import { isReversalKey } from './model-redis.js';
import { sqlCommands } from './model-sql.js';

/** What the store writes, up to the token: `…/k3x9q2h1-17` is the seventeenth delivery, `….2` its second claim. */
const record = /^(claimed|handled) (\S+-(\d+)(?:\.(\d+))?)(?=$| )/;

/**
 * The tokens of one process, which are the names of its deliveries. They hold the time, the host and random text, and
 * so they differ each time that a schedule is played. In the model a delivery is called d1, and its claims are d1, d1'
 * and d1''.
 */
class Tokens {
  readonly #deliveries: string[] = [];
  readonly #originals = new Map<string, string>();

  /** The next delivery that the receiver names is `delivery`. */
  begin(delivery: string): void {
    this.#deliveries.push(delivery);
  }

  /** Returns a word of a command with the model's name of its token. */
  shorten(word: string): string {
    if (!word.startsWith('claimed ') && !word.startsWith('handled ')) return word;
    const [start, state = '', token = '', delivery, claim = '1'] = record.exec(word) ?? [];
    if (start === undefined) return word;
    const name = this.#deliveries[Number(delivery) - 1];
    if (name === undefined) throw new Error(`The token ${token} is of no delivery.`);
    const short = `${state} ${name}${"'".repeat(Number(claim) - 1)}`;
    this.#originals.set(short, start);
    return short + word.slice(start.length);
  }

  /** Returns a reply as the process knows it, with its own token in full. */
  restore(reply: unknown): unknown {
    if (typeof reply !== 'string') return reply;
    const end = reply.indexOf(' ', reply.indexOf(' ') + 1);
    const short = end === -1 ? reply : reply.slice(0, end);
    const original = this.#originals.get(short);
    return original === undefined ? reply : original + reply.slice(short.length);
  }
}

/** What is at the two ends of a connection. */
export interface Ends {
  /** Redis runs a command and returns its reply. */
  runCommand(command: Command): unknown;
  /** The process learns what became of a command: `settle` settles the promise that its client gave for it. */
  learn(processName: string, command: Command, event: string, settle: () => void): Promise<void>;
  /** The network has lost a command or its reply. */
  lose(command: Command): void;
}

/** A command on its way to Redis, or its reply on its way back. */
export interface Command {
  /** Counts the commands of a connection. */
  readonly number: number;
  readonly words: readonly string[];
  /** The token that the command carries. `GET` carries none. */
  readonly token: string | undefined;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: Error) => void;
  /** Once Redis has run the command. */
  reply?: unknown;
  /** The client has rejected the promise already. */
  isGivenUp?: boolean;
}

/**
 * The connection of one process to Redis. Commands and replies keep their order, as on one socket, unless `anyOrder`.
 */
export class Connection {
  readonly #process: string;
  readonly #ends: Ends;
  readonly #anyOrder: boolean;
  readonly tokens = new Tokens();
  #sent: Command[] = [];
  #replied: Command[] = [];
  #count = 0;

  constructor(processName: string, ends: Ends, anyOrder: boolean) {
    this.#process = processName;
    this.#ends = ends;
    this.#anyOrder = anyOrder;
  }

  /** What `redisStore` takes for ioredis. */
  readonly client = {
    call: (...given: (string | number)[]): Promise<unknown> =>
      new Promise((resolve, reject) => {
        const words = given.map((word) => this.tokens.shorten(String(word)));
        const token = words.map((word) => /^(?:claimed|handled) (\S+)/.exec(word)?.[1]).find(Boolean);
        this.#count += 1;
        this.#sent.push({ number: this.#count, words, token, resolve, reject });
      }),
  };

  get isIdle(): boolean {
    return this.#sent.length === 0 && this.#replied.length === 0;
  }

  /** The next reply that the process will read. */
  get unread(): Command | undefined {
    return this.#replied[0];
  }

  /** Whether a command with this token, or its reply, is under way. */
  carries(token: string): boolean {
    return [...this.#sent, ...this.#replied].some((command) => command.token === token);
  }

  /** The process has died: nobody reads replies any more. */
  close(): void {
    for (const command of this.#sent) command.isGivenUp = true;
    this.#replied = [];
  }

  /** What decides, with what the process has seen, what this connection can still do. */
  fingerprint(): string {
    const sent = this.#sent.map(({ number, isGivenUp }) => `${number}${isGivenUp ? '!' : ''}`);
    return `${sent.join()}>${this.#replied.map(({ number, reply }) => `${number}=${String(reply)}`).join()}`;
  }

  /** What Redis and the network can do next. A process that is not awake reads nothing. */
  choices(budget: Budget, isAwake: boolean): Choice[] {
    const choices: Choice[] = [];
    for (const command of this.#anyOrder ? this.#sent : this.#sent.slice(0, 1)) {
      choices.push(this.#runCommand(command));
      if (budget.networkFaults > 0) choices.push(...this.#commandFaults(command, budget, isAwake));
      if (budget.lateCommands > 0 && isAwake && !command.isGivenUp) choices.push(this.#giveUp(command, budget));
    }
    for (const command of this.#anyOrder ? this.#replied : this.#replied.slice(0, 1)) {
      if (isAwake) choices.push(this.#readReply(command));
      if (budget.networkFaults > 0) choices.push(...this.#replyFaults(command, budget, isAwake));
    }
    return choices;
  }

  #runCommand(command: Command): Choice {
    return {
      take: () => {
        this.#sent = this.#sent.filter((other) => other !== command);
        command.reply = this.#ends.runCommand(command);
        if (!command.isGivenUp) this.#replied.push(command);
      },
      describe: () => `the store runs ${this.#name(command)} and replies ${show(command.reply)}`,
    };
  }

  #readReply(command: Command): Choice {
    const { number, reply } = command;
    return {
      take: () => {
        this.#replied = this.#replied.filter((other) => other !== command);
        return this.#ends.learn(this.#process, command, `reply ${number} ${String(reply)}`, () => {
          command.resolve(this.tokens.restore(reply));
        });
      },
      describe: () => `${this.#process} reads the reply to ${spell(command)}, ${show(reply)}`,
    };
  }

  /** The client rejects, but keeps the command and sends it, as ioredis with a `commandTimeout` does. */
  #giveUp(command: Command, budget: Budget): Choice {
    return {
      take: () => {
        budget.lateCommands -= 1;
        command.isGivenUp = true;
        return this.#reject(command);
      },
      describe: () => `${this.#process}'s client rejects ${spell(command)}, which it will still send`,
    };
  }

  #commandFaults(command: Command, budget: Budget, isAwake: boolean): Choice[] {
    const lose = (): void => {
      budget.networkFaults -= 1;
      this.#sent = this.#sent.filter((other) => other !== command);
      this.#ends.lose(command);
    };
    const lost = { take: lose, describe: () => `the network loses ${this.#name(command)}` };
    if (!isAwake || command.isGivenUp) return [lost];
    const refused = {
      take: () => {
        lose();
        return this.#reject(command);
      },
      describe: () => `${this.#process}'s client cannot send ${spell(command)} and rejects it`,
    };
    return [refused, lost];
  }

  #replyFaults(command: Command, budget: Budget, isAwake: boolean): Choice[] {
    const lose = (): void => {
      budget.networkFaults -= 1;
      this.#replied = this.#replied.filter((other) => other !== command);
      this.#ends.lose(command);
    };
    const lost = { take: lose, describe: () => `the network loses the reply to ${this.#name(command)}` };
    const broken = {
      take: () => {
        lose();
        return this.#reject(command);
      },
      describe: () => `the connection breaks before ${this.#process} reads the reply to ${spell(command)}`,
    };
    return [lost, ...(isAwake ? [broken] : []), this.#sendAgain(budget)];
  }

  /** The connection breaks, and the client sends all that has no reply again, as ioredis does. */
  #sendAgain(budget: Budget): Choice {
    return {
      take: () => {
        budget.networkFaults -= 1;
        for (const command of this.#replied) this.#ends.lose(command);
        this.#sent = [...this.#replied, ...this.#sent];
        this.#replied = [];
      },
      describe: () => `the connection breaks, and ${this.#process} sends what has no reply again`,
    };
  }

  #reject(command: Command): Promise<void> {
    return this.#ends.learn(this.#process, command, `no reply ${command.number}`, () => {
      command.reject(new Error('The connection is closed.'));
    });
  }

  #name(command: Command): string {
    return `${this.#process}'s ${spell(command)}`;
  }
}

/** A command for people: without the script and the facts of the callback. */
function spell({ words: [name = '', ...args] }: Command): string {
  const upper = name.toUpperCase();
  if (sqlCommands.includes(upper)) return [upper, args[0], `«${args[1] ?? ''}»`].join(' ');
  if (upper === 'EVAL') {
    const [, , key, token] = args;
    const script = args.length > 4 ? 'renew' : token === undefined ? 'read' : 'release';
    return ['EVAL', script, ...nameKey(key), ...(token === undefined ? [] : [`«${token}»`])].join(' ');
  }
  const [value, ...flags] = args.slice(1);
  return [
    upper,
    ...nameKey(args[0]),
    ...(value === undefined ? [] : [`«${shorten(value)}»`]),
    ...flags.map((flag) => flag.toUpperCase()),
  ].join(' ');
}

/** Names the record of a refund. The record of the transfer has no name. */
function nameKey(key = ''): string[] {
  return isReversalKey(key) ? ['reversal'] : [];
}

function show(reply: unknown): string {
  if (Array.isArray(reply)) return show(reply[0]);
  return typeof reply === 'string' && reply !== 'OK' ? `«${shorten(reply)}»` : String(reply);
}

function shorten(record: string): string {
  return record.split(' ', 2).join(' ');
}
