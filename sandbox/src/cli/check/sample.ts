import { UsageError } from '../../../../src/cli/arguments.js';
import type { PayoutService, Reading } from '../../../../src/core/payout-service.js';
import type { FinalStatus } from './commands.js';
import { toFixedForm, toFresh } from '../../services/fresh.js';
import type { Names } from '../../services/named-services.js';
import {
  getLeaf,
  listLeaves,
  looksLikeId,
  nameLeaf,
  setLeaf,
  spell,
  toHigher,
  toUnknown,
  type Leaf,
} from './values.js';

const idNames = ['id', 'externalId'] as const;
type IdName = (typeof idNames)[number];

/** What a payload has of one transfer. */
export interface Ids {
  readonly id: string;
  readonly externalId: string;
}

/** What `read` finds in a payload of a transfer. */
interface Facts {
  readonly id?: string | undefined;
  readonly externalId?: string | undefined;
  readonly state: string;
  readonly status: FinalStatus | 'PENDING';
  readonly amount?: number | string | undefined;
  readonly currency?: string | undefined;
}

/** What a sample is read with. */
interface SampleOptions {
  readonly service: Pick<PayoutService, 'readCallback'>;
  readonly status: FinalStatus | 'PENDING';
  readonly names: Names;
}

/** A sample of a callback, as the documentation of a service shows it. */
export class Sample {
  readonly payload: unknown;
  readonly facts: Facts;
  readonly #file: string;
  readonly #options: SampleOptions;
  readonly #leaves: readonly Leaf[];
  readonly #ids: Readonly<Record<IdName, readonly Leaf[]>>;
  /** The values that are fresh beside the ids. */
  readonly #named: ReadonlyMap<Leaf, keyof Names>;
  readonly #amount: Leaf | undefined;

  /** Throws UsageError unless `read` reads the ids and the state of the sample in a way that can be repeated. */
  constructor(file: string, payload: unknown, options: SampleOptions) {
    this.payload = payload;
    this.#file = file;
    this.#options = options;
    this.facts = this.#requireStatus(options.status);
    this.#leaves = listLeaves(payload);
    const named = (['event', 'transfer'] as const).map((kind) =>
      this.#leaves.flatMap((leaf) => {
        return options.names[kind].includes(nameLeaf(leaf)) ? [[leaf, kind] as const] : [];
      }),
    );
    this.#named = new Map(named.flat());
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

  /** Returns the names of values that look like an id, and are the same in every transfer. */
  findLookalikes(): string[] {
    const others = this.#free.filter((leaf) => leaf !== this.#amount);
    return others.filter((leaf) => looksLikeId(nameLeaf(leaf), getLeaf(this.payload, leaf))).map(nameLeaf);
  }

  has(name: string): boolean {
    return this.#leaves.some((leaf) => nameLeaf(leaf) === name);
  }

  /** Returns ids that no other transfer has, in the form of the sample's ids, unless the own one is `given`. */
  toFreshIds(name: string, given?: string): Ids {
    const externalId = given ?? this.#toFresh('externalId', `${name}-${crypto.randomUUID()}`);
    if (this.hasOneId) return { id: externalId, externalId };
    const prefix = /^[A-Za-z]+[_|-]/.exec(this.facts.id ?? '')?.[0] ?? '';
    return { id: this.#toFresh('id', prefix + crypto.randomUUID().replaceAll('-', '')), externalId };
  }

  /** Returns the payload of another event with other ids. Throws UsageError if `read` then returns another transfer. */
  make(ids: Ids): unknown {
    let payload = this.payload;
    for (const [leaf, kind] of this.#named) {
      const old = getLeaf(payload, leaf);
      if ((typeof old !== 'string' && typeof old !== 'number') || old === '') continue;
      payload = replace(payload, leaf, toFresh(old, kind === 'event' ? undefined : `${ids.externalId} ${String(old)}`));
    }
    for (const name of idNames) {
      for (const leaf of this.#ids[name]) payload = replace(payload, leaf, ids[name]);
    }
    this.#requireTransfer(payload, ids);
    return payload;
  }

  /** Returns a payload of `make` with another amount; `undefined` if `read` reads none. */
  changeAmount(payload: unknown): unknown {
    return this.#amount && setLeaf(payload, this.#amount, toHigher(getLeaf(payload, this.#amount)));
  }

  /**
   * Returns a payload of `make` with a state that the definition does not have: each word that is another one in
   * `other` is unknown. Returns `undefined` if there is none.
   */
  makeUnknown(payload: unknown, other: unknown): unknown {
    const unknown = this.#free.reduce((changed, leaf) => {
      const word = toUnknown(getLeaf(this.payload, leaf), getLeaf(other, leaf));
      return word === undefined ? changed : setLeaf(changed, leaf, word);
    }, payload);
    const reading = this.#read(unknown);
    if (isUnknown(reading)) return unknown;
    return this.#vary(payload, strange, isUnknown) ?? (reading.kind === 'ignored' ? unknown : undefined);
  }

  /** Returns a payload of `make` as an event that is none of the app's transfers; `undefined` if none is ignored. */
  makeForeign(payload: unknown): unknown {
    return this.#vary(
      payload,
      () => 'check.foreign',
      ({ kind }) => kind === 'ignored',
    );
  }

  /** Returns a payload of `make` without its state; `undefined` if `read` can do without. */
  withoutState(payload: unknown): unknown {
    return this.#vary(payload, () => undefined, isUnknown);
  }

  /** Returns the payloads of `make` that `read` refuses because a value is missing, by what is wrong. */
  listIncomplete(payload: unknown): readonly [title: string, payload: unknown][] {
    const ids = this.hasOneId ? [this.#ids.id] : [this.#ids.id, this.#ids.externalId];
    const all = [...ids, ...this.#free.map((leaf) => [leaf])];
    return all.flatMap((leaves) => {
      const set = (value: unknown) => leaves.reduce((changed, leaf) => setLeaf(changed, leaf, value), payload);
      // A service may document the event without it, and write `null`.
      const isInvalid = this.#read(set(undefined)).kind === 'invalid' && this.#read(set(null)).kind !== 'ignored';
      return isInvalid ? [[`${nameLeaf(leaves[0] ?? [])} is missing`, set(undefined)]] : [];
    });
  }

  /** Returns a payload of `make` as JSON in another spelling. */
  spell(payload: unknown): string {
    return spell(payload, this.#amount);
  }

  /** The leaves that are neither an id nor another name. */
  get #free(): readonly Leaf[] {
    const ids = idNames.flatMap((name) => this.#ids[name]);
    return this.#leaves.filter((leaf) => !ids.includes(leaf) && !this.#named.has(leaf));
  }

  #read(payload: unknown): Reading {
    return this.#options.service.readCallback(payload);
  }

  #requireStatus(status: SampleOptions['status']): Facts {
    const reading = this.#read(this.payload);
    const facts = toFacts(reading);
    if (facts?.status === status) return facts;
    const got = facts === undefined ? describe(reading) : `one that is ${facts.status}`;
    throw new UsageError(`Expected ${this.#file} to be a callback that is ${status}, got ${got}.`);
  }

  /** Finds the values that `read` takes an id from: the id is another one if one of them is. */
  #findIdLeaves(name: IdName): readonly Leaf[] {
    const read = this.#leaves.filter((leaf) => {
      const value = getLeaf(this.payload, leaf);
      if (typeof value !== 'string' && typeof value !== 'number') return false;
      const other = toFixedForm(value) ?? `${String(value)}9`;
      const facts = toFacts(this.#read(replace(this.payload, leaf, other)));
      return facts !== undefined && facts[name] !== this.facts[name];
    });
    if (read.length > 0 || this.facts[name] === undefined) return read;
    const advice = 'Does it have several copies of it, or does `read` make it of something else?';
    throw new UsageError(`Expected ${this.#file} to have a value that \`read\` takes \`${name}\` from. ${advice}`);
  }

  /** An app may read a copy of an id that the definition does not read. */
  #addCopies(leaves: readonly Leaf[], read: readonly Leaf[]): readonly Leaf[] {
    const values = leaves.map((leaf) => String(getLeaf(this.payload, leaf)));
    const copies = this.#leaves.filter((leaf) => {
      const value = String(getLeaf(this.payload, leaf));
      // A shorter one may be there by chance.
      const isLong = value.length >= 6 || /(?:id|ref|reference|number)$/i.test(leaf.at(-1) ?? '');
      return !read.includes(leaf) && isLong && values.includes(value);
    });
    return [...leaves, ...copies];
  }

  #isAmount(leaf: Leaf): boolean {
    const higher = toHigher(getLeaf(this.payload, leaf));
    const facts = higher === undefined ? undefined : toFacts(this.#read(setLeaf(this.payload, leaf, higher)));
    const isSame = facts?.id === this.facts.id && facts?.externalId === this.facts.externalId;
    return facts !== undefined && isSame && facts.amount !== this.facts.amount;
  }

  #toFresh(name: IdName, otherwise: string): string {
    return toFixedForm(getLeaf(this.payload, this.#ids[name][0] ?? [])) ?? otherwise;
  }

  #requireTransfer(payload: unknown, ids: Ids): void {
    const reading = this.#read(payload);
    const facts = toFacts(reading);
    const isSame = idNames.every((name) => [ids[name], undefined].includes(facts?.[name]));
    if (facts?.state === this.facts.state && isSame) return;
    const replaced = new Set(idNames.flatMap((name) => this.#ids[name].slice(0, 1)).map(nameLeaf));
    throw new UsageError(
      `Expected \`read\` to return the fresh ids and the same state after ${[...replaced].join(' and ')} of ` +
        `${this.#file} had other values, got ${describe(reading)}.`,
    );
  }

  /** Changes one value after the other, and returns the first payload that `read` finds to be as expected. */
  #vary(
    payload: unknown,
    change: (value: string | number) => unknown,
    isRight: (reading: Reading) => boolean,
  ): unknown {
    for (const leaf of this.#free) {
      const value = getLeaf(payload, leaf);
      if (typeof value !== 'string' && typeof value !== 'number') continue;
      const changed = setLeaf(payload, leaf, change(value));
      if (isRight(this.#read(changed))) return changed;
    }
    return undefined;
  }
}

const strange = (value: string | number): unknown => (typeof value === 'number' ? 987_654 : `${value}.unknown`);

function toFacts(reading: Reading): Facts | undefined {
  if (reading.kind === 'pending') return { ...reading.ids, state: reading.state, status: 'PENDING' };
  if (reading.kind !== 'callback') return undefined;
  const { id, externalId, status, amount, currency } = reading.fields;
  return { id, externalId, amount, currency, state: reading.state, status: status as FinalStatus };
}

/** Whether `read` refuses the state alone. */
function isUnknown(reading: Reading): boolean {
  const isAbout = (name: string): boolean =>
    reading.kind === 'invalid' && reading.issues.some(({ path }) => path[0] === name);
  return isAbout('state') && !['id', 'externalId', 'amount', 'currency'].some(isAbout);
}

/** Shows no value of a payload, because it may be a value of a customer. */
function describe(reading: Reading): string {
  if (reading.kind === 'ignored') return 'an event that it ignores';
  if (reading.kind === 'pending') return 'a state that is PENDING';
  if (reading.kind === 'callback') return `another transfer, or the state ${reading.state}`;
  return reading.issues.map(({ message }) => message).join('; ');
}

/** Returns a copy of the payload with another value there: a number stays one. */
function replace(payload: unknown, leaf: Leaf, value: string): unknown {
  return setLeaf(payload, leaf, typeof getLeaf(payload, leaf) === 'number' ? Number(value) : value);
}
