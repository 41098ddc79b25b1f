/** What Redis holds under a key. */
export interface StoredRecord {
  readonly value: string;
  /** `Infinity` without an expiry. */
  readonly expiresAt: number;
}

/** Whether the key is the one of a refund, in place of the one of its transfer. */
export function isReversalKey(key: string): boolean {
  return key.includes('reversed\u001f');
}

/** What the two scripts of the store have in common that change a key if it holds what the caller expects. */
const compareAndCall =
  /^if redis\.call\('GET', KEYS\[1\]\) == ARGV\[1\] then\s+return redis\.call\('(DEL|PEXPIRE)', KEYS\[1\](?:, ARGV\[2\])?\)\s+end\s+return 0$/;
/** The script that reads a key and its time. */
const readAndTime =
  /^local found = redis\.call\('GET', KEYS\[1\]\)\s+local left = redis\.pcall\('PTTL', KEYS\[1\]\)\s+return/;

/** Redis, as far as the store uses it: its commands and scripts, expiry by its own clock. */
export class ModelRedis {
  readonly records = new Map<string, StoredRecord>();

  /** Runs a command as it is sent, and returns the reply. */
  run(words: readonly string[], now: number): unknown {
    const [name = '', ...args] = words;
    const [key = ''] = args;
    switch (name.toUpperCase()) {
      case 'GET':
        return this.records.get(key)?.value ?? null;
      case 'SET':
        return this.#set(args, now);
      case 'DEL':
        return this.#delete(key);
      case 'PEXPIRE':
        return this.#expire(key, Number(args[1]), now);
      case 'EVAL':
        return this.#eval(args, now);
      default:
        throw new Error(`The model of Redis does not know the command ${name}.`);
    }
  }

  /** Removes the records whose time is up, and returns them. */
  lapse(now: number): StoredRecord[] {
    const lapsed = [...this.records].filter(([, { expiresAt }]) => expiresAt <= now);
    for (const [key] of lapsed) this.records.delete(key);
    return lapsed.map(([, record]) => record);
  }

  /** What decides what Redis can do next, beside its records: nothing. */
  fingerprint(): string {
    return '';
  }

  #set([key = '', value = '', ...flags]: string[], now: number): unknown {
    const options = flags.map((flag) => flag.toUpperCase());
    const before = this.records.get(key);
    if (options.includes('NX') && before !== undefined) return null;
    const px = options.indexOf('PX');
    this.records.set(key, { value, expiresAt: px === -1 ? Infinity : now + Number(options[px + 1]) });
    return options.includes('GET') ? (before?.value ?? null) : 'OK';
  }

  #delete(key: string): number {
    return this.records.delete(key) ? 1 : 0;
  }

  #expire(key: string, ms: number, now: number): number {
    const record = this.records.get(key);
    if (record === undefined) return 0;
    this.records.set(key, { ...record, expiresAt: now + ms });
    return 1;
  }

  #eval([script = '', , key = '', expected, ms]: string[], now: number): unknown {
    const record = this.records.get(key);
    if (readAndTime.test(script)) return [record?.value ?? null, record === undefined ? -2 : record.expiresAt - now];
    const call = compareAndCall.exec(script)?.[1];
    if (call === undefined) throw new Error(`The model of Redis does not know this script:\n${script}`);
    if (record?.value !== expected) return 0;
    return call === 'DEL' ? this.#delete(key) : this.#expire(key, Number(ms), now);
  }
}
