/**
 * What hides a semicolon or a comment, or is one. Words are read whole: an `e'` or a `$` within a word opens nothing.
 * It never backtracks, and neither does a search for an end below, so that a text is read once however it is made.
 */
const token =
  /;|--[^\n\r]*|\/\*|"[^"]*"?|[eE]?'|\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$|[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*/g;
const commentMark = /\/\*|\*\//g;
const escapedMark = /\\[^]|''|'/g;

interface SplitOptions {
  /** Whether a backslash escapes in a plain `'…'` too, as with `standard_conforming_strings = off`. */
  readonly escapes: boolean;
}

/**
 * Splits a text into its statements where Postgres does: at semicolons, but not in texts, quoted names, dollar quotes
 * and comments, which nest. Leaves out comments and empty statements. What is not closed reaches to the end of the text,
 * which Postgres refuses as a whole. A body of BEGIN ATOMIC is split too: a handler creates no functions.
 */
export function splitStatements(text: string, { escapes }: SplitOptions): string[] {
  const statements: string[] = [];
  let statement = '';
  let from = 0;
  /** Where an `E'…'` has ended that a `'…'` on a later line would go on with. */
  let escapedTo = Infinity;
  for (let match = find(token, text, 0); match !== null; match = token.exec(text)) {
    const [found] = match;
    const { index } = match;
    const follows = escapedTo <= index && text.slice(escapedTo, index).trim() === '';
    const isEscaped = found === "'" ? escapes || follows : found.toLowerCase() === "e'";
    token.lastIndex = findEnd(text, found, token.lastIndex, isEscaped);
    const isComment = found === '/*' || found.startsWith('--');
    escapedTo = isEscaped || (follows && isComment) ? token.lastIndex : Infinity;
    if (found !== ';' && !isComment) continue;
    // A comment separates words, as a space does.
    statement += `${text.slice(from, index)} `;
    from = token.lastIndex;
    if (isComment) continue;
    statements.push(statement.trim());
    statement = '';
  }
  return [...statements, (statement + text.slice(from)).trim()].filter((each) => each !== '');
}

/** Returns where ends what a token opens, or the end of the token itself if it opens nothing. */
function findEnd(text: string, opening: string, start: number, isEscaped: boolean): number {
  if (opening === '/*') return findEndOfComment(text, start);
  if (isEscaped) return findEndOfEscaped(text, start);
  if (opening !== "'" && !opening.startsWith('$')) return start;
  const end = text.indexOf(opening, start);
  return end === -1 ? text.length : end + opening.length;
}

function findEndOfComment(text: string, start: number): number {
  let depth = 1;
  for (let match = find(commentMark, text, start); match !== null; match = commentMark.exec(text)) {
    depth += match[0] === '/*' ? 1 : -1;
    if (depth === 0) return commentMark.lastIndex;
  }
  return text.length;
}

function findEndOfEscaped(text: string, start: number): number {
  for (let match = find(escapedMark, text, start); match !== null; match = escapedMark.exec(text)) {
    if (match[0] === "'") return escapedMark.lastIndex;
  }
  return text.length;
}

function find(expression: RegExp, text: string, start: number): RegExpExecArray | null {
  expression.lastIndex = start;
  return expression.exec(text);
}
