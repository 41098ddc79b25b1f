const longestTitle = 200;

/** What a title belongs to: a test, or the tests of a `describe`. */
interface Titled {
  readonly name: string;
  readonly suite?: Titled | undefined;
}

/** Throws if a title prints a value in place of its name: a failure would print all of that into the log. */
export function requireShortTitles(task: Titled): void {
  for (let each: Titled | undefined = task; each !== undefined; each = each.suite) {
    if (each.name.length <= longestTitle) continue;
    const beginning = each.name.slice(0, 80);
    throw new Error(`Expected a title of at most ${longestTitle} characters, got ${each.name.length}: ${beginning}…`);
  }
}
