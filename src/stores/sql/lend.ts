import { hasMethods } from '../../lib/checks.js';
import { pause } from '../../lib/deadline.js';
import { TransferCallbackError } from '../../lib/errors.js';

/** What a handler gets as `tx`, until it ends. */
export interface Loan<Tx> {
  readonly tx: Tx;
  /** Makes `tx` refuse all further calls: its connection may soon be another handler's. */
  end(hasSucceeded: boolean): void;
  /** Resolves when what the handler has left running is over. Returns undefined if nothing is. */
  idle(): Promise<unknown> | undefined;
}

/** Resolves with whether what a handler has left running ends in time. */
export function endsWithin(ms: number, running: Promise<unknown>): Promise<boolean> {
  return Promise.race([running.then(() => true), pause(ms, { keepAlive: false }).then(() => false)]);
}

/** What a handler may do with an object that is lent to it. */
export interface LendRules {
  /** Methods that send a statement, and reject where others throw. Refused if that would begin or end a transaction. */
  readonly queries?: readonly string[];
  /** Methods whose statement is sent when it is awaited. They throw if it would end the transaction. */
  readonly lazy?: readonly string[];
  /**
   * Methods that end the connection or return it to its pool, which the store does. They do nothing, resolve, and call
   * the callback.
   */
  readonly ignored?: readonly string[];
  /** Methods that begin or end a transaction, or return its connection to the pool. They are refused. */
  readonly controls?: readonly string[];
  /** Whether a call of one of `controls` is harmless, because it ends a nested transaction. */
  readonly isNested?: (target: object, name: string) => boolean;
  /** Methods that run a nested transaction, or return a promise of an object that sends statements. */
  readonly nests?: readonly string[];
  /** The rules of what those methods give to the handler. Default none. */
  readonly nested?: LendRules;
  /** Properties that are objects and are also lent. */
  readonly parts?: Readonly<Record<string, LendRules>>;
}

/** What begins or ends a transaction. What else does that is found out when the success is recorded. */
const controlText =
  /^\s*(?:begin|start\s|commit|end\b|rollback(?!\s+(?:(?:work|transaction)\s+)?to\b)|abort|prepare\s+transaction)/i;

/** A statement that ends a transaction. A fragment may begin with the same word, as the name of a column. */
const endText =
  /^\s*(?:(?:commit|end|rollback|abort)(?:\s+(?:work|transaction|and(?:\s+no)?\s+chain))*\s*(?:;|$)|prepare\s+transaction\s)/i;

/**
 * A query that locks tables: MySQL commits all earlier writes. The `LOCK TABLE` of PostgreSQL has neither READ nor
 * WRITE.
 */
const lockText = /^\s*lock\s+tables?\s[^;]*\b(?:read|write)\b/i;

type Method = (...args: unknown[]) => unknown;

/** What all objects share that are lent to one handler. */
export class Lending {
  hasEnded = false;
  readonly #running = new Set<Promise<unknown>>();

  /** Remembers a promise until it has ended. */
  track(promise: Promise<unknown>): void {
    this.#running.add(promise);
    const forget = (): void => {
      this.#running.delete(promise);
    };
    promise.then(forget, forget);
  }

  /** Resolves when all promises have ended. Returns undefined if there are none. */
  idle(): Promise<unknown> | undefined {
    return this.#running.size === 0 ? undefined : this.#waitForAll();
  }

  async #waitForAll(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }
}

/** Lends a transaction object of a library, or a bare connection, to a handler. */
export function lend<Tx extends object>(target: Tx, rules: LendRules = {}, lending = new Lending()): Loan<Tx> {
  return {
    tx: lendObject(target, rules, lending),
    end() {
      lending.hasEnded = true;
    },
    idle: () => lending.idle(),
  };
}

function lendObject<T extends object>(target: T, rules: LendRules, lending: Lending): T {
  const { queries = [], lazy = [], ignored = [], controls = [], parts = {} } = rules;
  const { nests = ['transaction', 'savepoint'], nested = {} } = rules;
  /** What the handler has set on the object, and what is lent of it. */
  const own: Record<PropertyKey, unknown> = Object.fromEntries(ignored.map((name) => [name, doNothing]));
  const isQuiet = (name: PropertyKey): boolean => [...queries, ...controls].includes(name as string);

  /** Makes the method that the handler calls in place of the object's own method. */
  const wrap = (name: string, method: Method): Method => {
    // On the object itself: a method may use its private fields.
    const call = (args: unknown[]): unknown => callOpen(method, target, args, lending);
    if (controls.includes(name)) {
      return (...args) => (rules.isNested?.(target, name) === true ? call(args) : reject(controlRefusal(), args));
    }
    if (queries.includes(name)) {
      return (...args) => {
        if (controlText.test(readText(args[0]))) return reject(controlRefusal(), args);
        try {
          return keepQuiet(call(args));
        } catch (error) {
          return reject(error, args);
        }
      };
    }
    if (lazy.includes(name)) {
      return (...args) => {
        refuseEnd(readText(args[0]));
        return call(args);
      };
    }
    if (nests.includes(name)) return (...args) => nest(call, args, nested, lending);
    return (...args) => call(args);
  };

  return new Proxy(target, {
    get(_, name) {
      if (Object.hasOwn(own, name)) return own[name];
      // Prisma's queries start at a property, and Sequelize reads the properties of its transaction. Promises and
      // consoles ask for `then` and for symbols.
      if (lending.hasEnded && typeof name === 'string' && name !== 'then' && !isQuiet(name)) throw lateRefusal();
      const value: unknown = Reflect.get(target, name);
      if (typeof name !== 'string') return value;
      const part = Object.hasOwn(parts, name) ? parts[name] : undefined;
      if (part !== undefined && typeof value === 'object' && value !== null) {
        return (own[name] = lendObject(value, part, lending));
      }
      return typeof value === 'function' ? wrap(name, value as Method) : value;
    },
    // A connection goes to other handlers: what this one sets must not.
    set(_, name, value) {
      own[name] = value;
      return true;
    },
    apply(_, self, args: unknown[]) {
      refuseEnd(readTemplate(args[0]));
      return callOpen(target as unknown as Method, self, args, lending);
    },
  });
}

/** Calls a method unless the handler has ended. */
function callOpen(method: Method, self: unknown, args: unknown[], lending: Lending): unknown {
  if (lending.hasEnded) throw lateRefusal();
  if (lockText.test(readText(args[0]))) {
    throw refusal('it would commit what was written so far. Lock rows in place of tables: `SELECT … FOR UPDATE`');
  }
  return Reflect.apply(method, self, args);
}

/** Begins a nested transaction. Lends what it gives to the handler, and waits for its end. */
function nest(call: (args: unknown[]) => unknown, args: unknown[], rules: LendRules, lending: Lending): unknown {
  const lendNested = (nested: unknown): unknown =>
    // An array has the results of several operations.
    ((typeof nested === 'object' && nested !== null) || typeof nested === 'function') && !Array.isArray(nested)
      ? lendObject(nested, rules, lending)
      : nested;
  const hasWork = args.some((arg) => typeof arg === 'function');
  const reply = call(
    args.map((arg) =>
      typeof arg === 'function'
        ? (nested: unknown, ...rest: unknown[]) => (arg as Method)(lendNested(nested), ...rest)
        : arg,
    ),
  );
  // The transaction of Knex is not a promise, but has the methods of a promise.
  if (!hasMethods(reply, 'then')) return reply;
  const ended = Promise.resolve(reply);
  lending.track(ended);
  return hasWork ? reply : ended.then(lendNested);
}

/** Resolves, and calls the callback, as if the connection had ended. */
function doNothing(...args: readonly unknown[]): Promise<void> {
  const callback = args.at(-1);
  if (typeof callback === 'function') process.nextTick(callback);
  return Promise.resolve();
}

/** Reads the text of a query, which may be an object. */
export function readText(query: unknown): string {
  const { text, sql } = (query ?? {}) as { text?: unknown; sql?: unknown };
  const sent = text ?? sql ?? query;
  return typeof sent === 'string' ? sent : '';
}

/** Reads the beginning of a query of postgres.js, which is a template. It also calls `tx` with the names of columns. */
function readTemplate(query: unknown): string {
  return Array.isArray(query) && Object.hasOwn(query, 'raw') ? String(query[0]) : '';
}

function refuseEnd(text: string): void {
  if (endText.test(text)) throw controlRefusal();
}

/** Rejects as `pg` does: calls the callback, if the last argument is one. */
function reject(error: unknown, args: readonly unknown[]): unknown {
  const callback = args.at(-1);
  if (typeof callback !== 'function') return keepQuiet(Promise.reject(error as Error));
  process.nextTick(callback, error);
  return undefined;
}

/** Makes the error of a call that `tx` refuses. */
function refusal(why: string): TransferCallbackError {
  return new TransferCallbackError('TRANSACTION_CONTROL', `The query was refused: ${why}.`);
}

/** Makes the error of a call after the handler has finished. */
export function lateRefusal(): TransferCallbackError {
  return refusal('the handler has finished');
}

function controlRefusal(): TransferCallbackError {
  return refusal('the store ends the transaction. Return to commit, throw to roll back');
}

/** A handler may leave a query behind that it does not await: its failure must not end the process. */
function keepQuiet<Reply>(reply: Reply): Reply {
  if (reply instanceof Promise) reply.catch(() => undefined);
  // The query objects of `pg` emit it.
  else if (hasMethods(reply, 'on')) (reply as Record<'on', Method>).on('error', () => undefined);
  return reply;
}
