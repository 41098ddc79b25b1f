/** What the store writes, up to the token: `…/k3x9q2h1-17` is the seventeenth delivery, `….2` its second claim. */
const record = /^(claimed|handled) (\S+-(\d+)(?:\.(\d+))?)(?=$| )/;

/**
 * The tokens of one process, which are the names of its deliveries. They hold the time, the host and random text, and
 * so they differ each time that a schedule is played. In the model a delivery is called d1, and its claims are d1, d1'
 * and d1''.
 */
export class Tokens {
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
