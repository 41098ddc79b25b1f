const longest = 255;

/** One search for this ends most strings: they are plain ASCII. */
const unusual = /[^ -~]/;

/** Characters that end a line, reverse its direction, or are invisible. */
const unprintable = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/**
 * Returns a string of a sender as people see it in log lines, outcomes and errors: its first 255 characters, with every
 * control, format, surrogate and separator character as its number, such as `\u{202e}`. Such a character could change
 * how a line is displayed.
 */
export function toPrintable(text: string): string {
  if (!unusual.test(text)) return text.slice(0, longest);
  const enough = text.slice(0, 2 * longest);
  return escapeUnprintable(Array.from(enough).slice(0, longest).join(''));
}

/**
 * Returns a copy of a string. V8 keeps a whole string for as long as a part that was cut from it, and a name of 20
 * characters may have been cut from a body. So copy each string of a sender that is kept after its delivery.
 */
export function copyString(original: string): string {
  // A concatenation is written into memory of its own when it is cut.
  return ` ${original}`.slice(1);
}

/** Returns the whole string, with the same characters as their numbers. */
export function escapeUnprintable(text: string): string {
  return text.replace(unprintable, (character) => `\\u{${Number(character.codePointAt(0)).toString(16)}}`);
}

/**
 * Returns the message of a thrown value. An error of several addresses has a code and no message. A revoked Proxy
 * cannot be read.
 */
export function messageOf(thrown: unknown): string {
  try {
    if (!(thrown instanceof Error)) return String(thrown);
    return thrown.message || ((thrown as NodeJS.ErrnoException).code ?? thrown.name);
  } catch {
    return 'The thrown value cannot be read.';
  }
}

/** Returns `undefined` if there is no text, or if it is not JSON. */
export function parseJson(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? '');
  } catch {
    return undefined;
  }
}

/**
 * Returns the name of `known` that someone who has written `name` has probably meant, or `undefined` if none is near.
 */
export function didYouMean(name: string, known: readonly string[]): string | undefined {
  let [nearest, least]: [string | undefined, number] = [undefined, Math.ceil(name.length / 3) + 1];
  for (const candidate of known) {
    const edits = countEdits(name.toLowerCase(), candidate.toLowerCase());
    if (edits < least) [nearest, least] = [candidate, edits];
  }
  return nearest;
}

/** Returns how many letters must be inserted, deleted or replaced to make one string of the other. */
function countEdits(from: string, to: string): number {
  let counts = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const letter of from) {
    const before = counts;
    counts = [];
    let left = Infinity;
    for (const [index, above] of before.entries()) {
      const diagonal = before[index - 1] ?? Infinity;
      left = Math.min(left + 1, above + 1, diagonal + (letter === to[index - 1] ? 0 : 1));
      counts.push(left);
    }
  }
  return counts.at(-1) ?? 0;
}
