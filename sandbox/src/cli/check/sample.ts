import { randomInt } from 'node:crypto';
import { UsageError } from '../../../../src/cli/arguments.js';
import type { PayoutService, Reading } from '../../../../src/core/payout-service.js';
import { getLeaf, listLeaves, nameLeaf, setLeaf, type Leaf } from './leaves.js';
import type { FinalStatus } from './service.js';

type Callback = Extract<Reading, { kind: 'callback' }>;
type Facts = Callback['fields'];
type IdName = 'id' | 'externalId';

/** What a payload has of one transfer. */
export interface Ids {
  readonly id: string;
  readonly externalId: string;
}

/** A definition, which reads the payloads. */
type Reader = Pick<PayoutService, 'readCallback'>;

/** A shorter value may be in a payload twice by chance. */
const leastLength = 6;

/** A sample of a callback, as the documentation of a service shows it. */
export class Sample {
  readonly payload: unknown;
  readonly #file: string;
  readonly #service: Reader;
  readonly #reading: Callback;
  readonly #leaves: readonly Leaf[];
  readonly #ids: Readonly<Record<IdName, readonly Leaf[]>>;
  readonly #amount: Leaf | undefined;

  /** Throws UsageError unless `read` reads the ids and the state of the sample in a way that can be repeated. */
  constructor(file: string, payload: unknown, { service, status }: { service: Reader; status: FinalStatus }) {
    this.payload = payload;
    this.#file = file;
    this.#service = service;
    this.#reading = this.#requireStatus(status);
    this.#leaves = listLeaves(payload);
    const [id, externalId] = [this.#findIdLeaves('id'), this.#findIdLeaves('externalId')];
    const read = [...id, ...externalId];
    this.#ids = { id: this.#addCopies(id, read), externalId: this.#addCopies(externalId, read) };
    this.#amount = this.#leaves.find((leaf) => this.#isAmount(leaf));
    this.make(this.toFreshIds('sample'));
  }

  /** Whether the service and the app know a transfer by the same id. */
  get hasOneId(): boolean {
    const [id] = this.#ids.id;
    return this.#ids.externalId.some((leaf) => leaf === id);
  }

  get hasAmount(): boolean {
    return this.#amount !== undefined;
  }

  /** The amount and the currency, as `read` returns them. */
  get money(): Pick<Facts, 'amount' | 'currency'> {
    const { amount, currency } = this.#reading.fields;
    return { amount, currency };
  }

  /** Returns ids that no other transfer has, in the form of those of the sample, unless the own one is `given`. */
  toFreshIds(name: string, given?: string): Ids {
    const externalId = given ?? this.#toFresh('externalId', `${name}-${crypto.randomUUID()}`);
    if (this.hasOneId) return { id: externalId, externalId };
    const own = this.#reading.fields.id;
    const prefix = /^[A-Za-z]+[_|-]/.exec(own)?.[0] ?? '';
    return { id: this.#toFresh('id', prefix + crypto.randomUUID().replaceAll('-', '')), externalId };
  }

  /** Returns the payload with other ids. Throws UsageError if `read` then returns another transfer. */
  make(ids: Ids): unknown {
    let payload = this.payload;
    for (const name of ['id', 'externalId'] as const) {
      for (const leaf of this.#ids[name]) {
        payload = setLeaf(payload, leaf, toTypeOf(getLeaf(this.payload, leaf), ids[name]));
      }
      const leaf = this.#ids[name].at(0) ?? [];
      this.#requireTransfer(payload, leaf, name === 'id' && !this.hasOneId ? { id: ids.id } : ids);
    }
    return payload;
  }

  /** Returns a payload of `make` with another amount. */
  changeAmount(payload: unknown): unknown {
    const leaf = this.#amount;
    return leaf === undefined ? payload : setLeaf(payload, leaf, toHigher(getLeaf(payload, leaf)));
  }

  /** Returns a payload of `make` with a state that the definition does not have; `undefined` if there is none. */
  makeUnknown(payload: unknown): unknown {
    return this.#vary(payload, strange, (reading) => reading.kind === 'invalid' && isAbout(reading, 'state'));
  }

  /** Returns a payload of `make` as an event that is none of the app's transfers; `undefined` if none is ignored. */
  makeForeign(payload: unknown): unknown {
    return this.#vary(payload, foreign, ({ kind }) => kind === 'ignored');
  }

  /** Returns a payload of `make` without its state; `undefined` if `read` can do without. */
  withoutState(payload: unknown): unknown {
    return this.#vary(payload, remove, (reading) => reading.kind === 'invalid' && !hasLostId(reading));
  }

  /** Returns a payload of `make` without an id; `undefined` if `read` can do without. */
  withoutId(payload: unknown, name: IdName): unknown {
    const bare = this.#ids[name].reduce((copy, leaf) => setLeaf(copy, leaf, undefined), payload);
    return this.#service.readCallback(bare).kind === 'invalid' ? bare : undefined;
  }

  #requireStatus(status: FinalStatus): Callback {
    const reading = this.#service.readCallback(this.payload);
    if (reading.kind === 'callback' && reading.fields.status === status) return reading;
    const got = reading.kind === 'callback' ? `one that is ${reading.fields.status}` : describe(reading);
    throw new UsageError(`Expected ${this.#file} to be a callback that is ${status}, got ${got}.`);
  }

  /** Finds the values that `read` takes an id from: the id is another one if one of them is. */
  #findIdLeaves(name: IdName): readonly Leaf[] {
    const read = this.#leaves.filter((leaf) => {
      const value = getLeaf(this.payload, leaf);
      if (typeof value !== 'string' && typeof value !== 'number') return false;
      const reading = this.#service.readCallback(setLeaf(this.payload, leaf, toFreshValue(value)));
      return reading.kind === 'callback' && reading.fields[name] !== this.#reading.fields[name];
    });
    if (read.length > 0) return read;
    const advice = 'Does it have several copies of it, or does `read` make it of something else?';
    throw new UsageError(`Expected ${this.#file} to have a value that \`read\` takes \`${name}\` from. ${advice}`);
  }

  /** An app may read a copy of an id that the definition does not read. */
  #addCopies(leaves: readonly Leaf[], read: readonly Leaf[]): readonly Leaf[] {
    const values = leaves.map((leaf) => String(getLeaf(this.payload, leaf)));
    const copies = this.#leaves.filter((leaf) => {
      const value = String(getLeaf(this.payload, leaf));
      return !read.includes(leaf) && value.length >= leastLength && values.includes(value);
    });
    return [...leaves, ...copies];
  }

  #isAmount(leaf: Leaf): boolean {
    const value = getLeaf(this.payload, leaf);
    const higher = toHigher(value);
    if (higher === undefined) return false;
    const reading = this.#service.readCallback(setLeaf(this.payload, leaf, higher));
    if (reading.kind !== 'callback') return false;
    const { id, externalId, amount } = this.#reading.fields;
    const { fields } = reading;
    return fields.id === id && fields.externalId === externalId && fields.amount !== amount;
  }

  #toFresh(name: IdName, otherwise: string): string {
    const [leaf = []] = this.#ids[name];
    const value = getLeaf(this.payload, leaf);
    return toFixedForm(value) ?? otherwise;
  }

  #requireTransfer(payload: unknown, leaf: Leaf, ids: Partial<Ids>): void {
    const reading = this.#service.readCallback(payload);
    const isSame =
      reading.kind === 'callback' &&
      reading.state === this.#reading.state &&
      Object.entries(ids).every(([name, id]) => reading.fields[name as IdName] === id);
    if (isSame) return;
    throw new UsageError(
      `Expected \`read\` to return the fresh id and the same state after ${nameLeaf(leaf)} of ${this.#file} was ` +
        `replaced, got ${describe(reading)}.`,
    );
  }

  /** Changes one value after the other, and returns the first payload that `read` finds to be as expected. */
  #vary(
    payload: unknown,
    change: (value: string | number) => unknown,
    isRight: (reading: Reading) => boolean,
  ): unknown {
    const ids = [...this.#ids.id, ...this.#ids.externalId];
    for (const leaf of this.#leaves) {
      const value = getLeaf(payload, leaf);
      if (ids.includes(leaf) || (typeof value !== 'string' && typeof value !== 'number')) continue;
      const changed = setLeaf(payload, leaf, change(value));
      if (isRight(this.#service.readCallback(changed))) return changed;
    }
    return undefined;
  }
}

const strange = (value: string | number): unknown => (typeof value === 'number' ? 987_654 : `${value}.unknown`);
const foreign = (): string => 'check.foreign';
const remove = (): undefined => undefined;

function isAbout({ issues }: Extract<Reading, { kind: 'invalid' }>, name: string): boolean {
  return issues.some(({ path }) => path[0] === name);
}

function hasLostId(reading: Extract<Reading, { kind: 'invalid' }>): boolean {
  return ['id', 'externalId', 'amount', 'currency'].some((name) => isAbout(reading, name));
}

/** No value of a payload is shown: it may be that of a customer. */
function describe(reading: Reading): string {
  if (reading.kind === 'ignored') return 'an event that it ignores';
  if (reading.kind === 'pending') return 'a state that is PENDING';
  if (reading.kind === 'callback') return `another transfer, or the state ${reading.state}`;
  return reading.issues.map(({ message }) => message).join('; ');
}

/** Returns a value of the same form, if the form is one that an app may demand: a number, digits or a UUID. */
function toFixedForm(value: unknown): string | undefined {
  if (typeof value === 'number') return String(randomInt(1_000_000_000, 2 ** 47));
  const text = String(value);
  if (/^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text)) return crypto.randomUUID();
  if (!/^\d+$/.test(text)) return undefined;
  return Array.from({ length: Math.max(text.length, 12) }, () => String(randomInt(1, 10))).join('');
}

function toFreshValue(value: string | number): string | number {
  const fresh = toFixedForm(value) ?? `${String(value)}9`;
  return typeof value === 'number' ? Number(fresh) : fresh;
}

function toTypeOf(value: unknown, text: string): unknown {
  return typeof value === 'number' ? Number(text) : text;
}

/** Returns an amount that is higher by one, written in the same way; `undefined` for what is no amount. */
function toHigher(value: unknown): unknown {
  if (typeof value === 'number') return value + 1;
  if (typeof value !== 'string' || !/^\d+(?:\.\d+)?$/.test(value)) return undefined;
  return (Number(value) + 1).toFixed(value.split('.')[1]?.length ?? 0);
}
