import { hasMethods } from '../../lib/checks.js';
import { TransferCallbackError } from '../../lib/errors.js';

/** What a handler gets as `tx`, until it ends. */
export interface Loan<Tx> {
  readonly tx: Tx;
  /** Makes `tx` refuse all further calls: its connection may soon be another handler's. */
  end(): void;
  /** Resolves when the nested transactions that `tx` has begun are over: what they send last would fall into ours. */
  idle(): Promise<unknown>;
}

/** The methods of a bare connection. */
export interface ConnectionMethods {
  /** Send a statement. Refused if that would begin or end a transaction. */
  readonly queries: readonly string[];
  /** Begin or end a transaction, and are refused. */
  readonly controls: readonly string[];
}

/** What begins or ends a transaction. What else does that is found out when the success is recorded. */
const controlText =
  /^\s*(?:begin|start\s|commit|end\b|rollback(?!\s+(?:(?:work|transaction)\s+)?to\b)|abort|prepare\s+transaction)/i;

/** Lends a transaction object of a library, or a bare connection, to a handler. */
export function lend<Tx extends object>(target: Tx, methods?: ConnectionMethods): Loan<Tx> {
  let isOpen = true;
  const nested: unknown[] = [];
  const call = (method: (...args: unknown[]) => unknown, self: unknown, args: unknown[]): unknown => {
    if (!isOpen) throw refusal('the handler has finished');
    return Reflect.apply(method, self, args);
  };
  const own: Record<PropertyKey, unknown> = methods === undefined ? {} : ownMethods(target, methods, call);
  const tx = new Proxy(target, {
    get(_, name) {
      if (Object.hasOwn(own, name)) return own[name];
      // Prisma's queries start at a property, and Sequelize reads those of its transaction. Promises and consoles ask for these.
      if (!isOpen && typeof name === 'string' && name !== 'then') throw refusal('the handler has finished');
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      // On the object itself: a method may use its private fields.
      return (...args: unknown[]) => {
        const reply = call(value as () => unknown, target, args);
        if (name === 'transaction' || name === 'savepoint') nested.push(reply);
        return reply;
      };
    },
    // A connection goes to other handlers: what this one sets must not.
    set(_, name, value) {
      own[name] = value;
      return true;
    },
    apply: (_, self, args: unknown[]) => call(target as () => unknown, self, args),
  });
  return {
    tx,
    end() {
      isOpen = false;
    },
    idle: () => Promise.allSettled(nested),
  };
}

function ownMethods(
  connection: object,
  { queries, controls }: ConnectionMethods,
  call: (method: (...args: unknown[]) => unknown, self: unknown, args: unknown[]) => unknown,
): Record<PropertyKey, unknown> {
  const control = (args: unknown[]): unknown =>
    reject(refusal('the store ends the transaction. Return to commit, throw to roll back'), args);
  const send = (name: string) => {
    const method = Reflect.get(connection, name) as (...args: unknown[]) => unknown;
    return (...args: unknown[]): unknown => {
      const text = (args[0] as { text?: unknown } | undefined)?.text ?? args[0];
      if (typeof text === 'string' && controlText.test(text)) return control(args);
      try {
        return keepQuiet(call(method, connection, args));
      } catch (error) {
        return reject(error, args);
      }
    };
  };
  return Object.fromEntries([
    ['release', () => undefined],
    ...controls.map((name) => [name, (...args: unknown[]) => control(args)]),
    ...queries.map((name) => [name, send(name)]),
  ]) as Record<PropertyKey, unknown>;
}

/** Rejects as `pg` does: calls the callback, if the last argument is one. */
function reject(error: unknown, args: readonly unknown[]): unknown {
  const callback = args.at(-1);
  if (typeof callback !== 'function') return keepQuiet(Promise.reject(error as Error));
  process.nextTick(callback, error);
  return undefined;
}

/** Makes the error of a call that `tx` refuses. */
export function refusal(why: string): TransferCallbackError {
  return new TransferCallbackError('TRANSACTION_CONTROL', `The query was refused: ${why}.`);
}

interface Emitter {
  on(event: 'error', listener: () => void): unknown;
}

/** A handler may leave a query behind that it does not await: its failure must not end the process. */
function keepQuiet<Reply>(reply: Reply): Reply {
  if (reply instanceof Promise) reply.catch(() => undefined);
  // The query objects of `pg` emit it.
  else if (hasMethods(reply, 'on')) (reply as Emitter).on('error', () => undefined);
  return reply;
}
