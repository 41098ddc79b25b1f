/** What Redis holds under the callback's key. */
export interface StoredRecord {
  readonly value: string;
  /** `Infinity` without an expiry. */
  readonly expiresAt: number;
}

/** What the two scripts of the store have in common: they change the key if it holds what the caller expects. */
const compareAndCall =
  /^if redis\.call\('GET', KEYS\[1\]\) == ARGV\[1\] then\s+return redis\.call\('(DEL|PEXPIRE)', KEYS\[1\](?:, ARGV\[2\])?\)\s+end\s+return 0$/;

/** Redis, as far as the store uses it: one key, its commands and scripts, expiry by its own clock. */
export class ModelRedis {
  record: StoredRecord | undefined;

  /** Runs a command as it is sent, without the key's name, and returns the reply. */
  run(words: readonly string[], now: number): unknown {
    const [name = '', ...args] = words;
    switch (name.toUpperCase()) {
      case 'GET':
        return this.record?.value ?? null;
      case 'SET':
        return this.#set(args, now);
      case 'DEL':
        return this.#delete();
      case 'PEXPIRE':
        return this.#expire(Number(args[1]), now);
      case 'EVAL':
        return this.#eval(args, now);
      default:
        throw new Error(`The model of Redis does not know the command ${name}.`);
    }
  }

  /** Removes the record if its time is up, and returns it. */
  lapse(now: number): StoredRecord | undefined {
    const { record } = this;
    if (record === undefined || record.expiresAt > now) return undefined;
    this.record = undefined;
    return record;
  }

  #set([, value = '', ...flags]: string[], now: number): unknown {
    const options = flags.map((flag) => flag.toUpperCase());
    const before = this.record;
    if (options.includes('NX') && before !== undefined) return null;
    const px = options.indexOf('PX');
    this.record = { value, expiresAt: px === -1 ? Infinity : now + Number(options[px + 1]) };
    return options.includes('GET') ? (before?.value ?? null) : 'OK';
  }

  #delete(): number {
    const deleted = this.record === undefined ? 0 : 1;
    this.record = undefined;
    return deleted;
  }

  #expire(ms: number, now: number): number {
    if (this.record === undefined) return 0;
    this.record = { ...this.record, expiresAt: now + ms };
    return 1;
  }

  #eval([script = '', , , expected, ms]: string[], now: number): number {
    const call = compareAndCall.exec(script)?.[1];
    if (call === undefined) throw new Error(`The model of Redis does not know this script:\n${script}`);
    if (this.record?.value !== expected) return 0;
    return call === 'DEL' ? this.#delete() : this.#expire(Number(ms), now);
  }
}
