// The places in both packages that refuse an option, found in their sources, and which of them an error has come from.
import ts from 'typescript';
import { listFiles, readText } from '../pages.js';

/** The functions of src/lib/checks.ts that throw or make the error of an option. */
const makers = new Set([
  ...['invalidArgument', 'invalidSecret', 'invalidVariable', 'requireFunction', 'requireBoolean'],
  ...['wholeNumber', 'onlyKnownOptions'],
]);

/** A call that refuses an option. */
export interface Site {
  readonly path: string;
  /** Its first and its last line. */
  readonly lines: readonly [number, number];
  readonly code: string;
}

function findIn(path: string): Site[] {
  const source = ts.createSourceFile(path, readText(path), ts.ScriptTarget.Latest, true);
  const toLine = (position: number): number => source.getLineAndCharacterOfPosition(position).line + 1;
  const found: Site[] = [];
  const visit = (node: ts.Node): void => {
    const isMaker = ts.isCallExpression(node) && makers.has(node.expression.getText());
    const isWritten =
      ts.isNewExpression(node) && node.expression.getText().endsWith('Error') && hasCode(node.getText());
    if (isMaker || isWritten) {
      const code = node.getText().replaceAll(/\s+/g, ' ');
      found.push({ path, lines: [toLine(node.getStart()), toLine(node.getEnd())], code });
    }
    node.forEachChild(visit);
  };
  visit(source);
  return found;
}

const hasCode = (text: string): boolean => /\bWrite \\?`/.test(text);

export const sites: readonly Site[] = ['src', 'sandbox/src']
  .flatMap((folder) => listFiles(folder, '.ts'))
  .filter((path) => path !== 'src/lib/checks.ts')
  .flatMap(findIn);

/** The beginning of each message about a result of `read`. */
export const issueHeads: readonly string[] = findHeads('src/client/service/read.ts');

function findHeads(path: string): string[] {
  const source = ts.createSourceFile(path, readText(path), ts.ScriptTarget.Latest, true);
  const heads: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node)) heads.push(node.text);
    node.forEachChild(visit);
  };
  visit(source);
  return heads.filter((text) => /^(?:Expected|The schema|Reading|\. )/.test(text));
}

/** Returns the sites on the stack of an error. */
export function findSites({ stack = '' }: Error): Site[] {
  const frames = [...stack.matchAll(/([\w./-]+\.ts):(\d+):\d+/g)];
  return sites.filter(({ path, lines: [first, last] }) =>
    frames.some(([, file = '', line]) => file.endsWith(`/${path}`) && Number(line) >= first && Number(line) <= last),
  );
}
