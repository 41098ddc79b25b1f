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
