// Writes the API reference: one page for each entry point, from the declarations and their doc comments.
import { basename } from 'node:path';
import { format } from 'prettier';
import ts from 'typescript';
import { exportsOf, listEntries, readCompilerOptions, type Entry } from './entries.js';

/** An export of the package. */
export interface Documented {
  readonly name: string;
  readonly kind: string;
  /** Its doc comment; empty if there is none. */
  readonly doc: string;
  /** Its declaration, with the doc comments of its members. */
  readonly declaration: string;
}

/** A page of the reference. */
export interface ApiPage {
  /** Its file name, such as `client.md`. */
  readonly file: string;
  readonly text: string;
}

/** What an entry point exports. */
export interface EntryExports {
  readonly entry: Entry;
  readonly own: readonly Documented[];
  /** The address of every export in the reference, such as `root.md#redisstore`; its own and those of earlier entries. */
  readonly addresses: ReadonlyMap<string, string>;
}

const kinds: readonly (readonly [ts.SymbolFlags, string])[] = [
  [ts.SymbolFlags.Class, 'class'],
  [ts.SymbolFlags.Function, 'function'],
  [ts.SymbolFlags.Interface, 'interface'],
  [ts.SymbolFlags.TypeAlias, 'type'],
  [ts.SymbolFlags.Variable, 'constant'],
];

/** Returns the exports of each entry. What two entries share is shown with the first one. */
export async function readExports(): Promise<EntryExports[]> {
  const entries = listEntries();
  const program = ts.createProgram(
    entries.map(({ source }) => source),
    { ...readCompilerOptions(), noEmit: false, declaration: true, emitDeclarationOnly: true, paths: {} },
  );
  const declarations = emitDeclarations(program);
  const shownAt = new Map<ts.Symbol, string>();
  const result: EntryExports[] = [];
  for (const entry of entries) {
    const own: Documented[] = [];
    const addresses = new Map<string, string>();
    const toAnchor = anchors();
    // Functions, classes and constants first: they are what a reader looks for.
    const found = [...exportsOf(program, entry.source)].sort(([, a], [, b]) => Number(isType(a)) - Number(isType(b)));
    for (const [name, symbol] of found) {
      if (!shownAt.has(symbol)) {
        shownAt.set(symbol, `${pageFile(entry)}#${toAnchor(name)}`);
        own.push(await describe(name, symbol, program.getTypeChecker(), declarations));
      }
      addresses.set(name, shownAt.get(symbol) ?? '');
    }
    result.push({ entry, own, addresses });
  }
  return result;
}

/** Makes the anchors of a page's headings as GitHub does: in lower case, and numbered where two would be the same. */
function anchors(): (title: string) => string {
  const counts = new Map<string, number>();
  return (title) => {
    const anchor = title.toLowerCase();
    const count = counts.get(anchor) ?? 0;
    counts.set(anchor, count + 1);
    return count === 0 ? anchor : `${anchor}-${count}`;
  };
}

/** Returns the pages of the reference, with an index. */
export function renderApi(all: readonly EntryExports[]): ApiPage[] {
  return [renderIndex(all), ...all.map(renderEntry)];
}

const notice = '<!-- Written by `npm run api` from the doc comments. Change those. -->\n\n';
const isType = ({ flags }: ts.Symbol): boolean =>
  (flags & (ts.SymbolFlags.Interface | ts.SymbolFlags.TypeAlias)) !== 0 && (flags & ts.SymbolFlags.Class) === 0;
const pageFile = ({ name }: Entry): string => `${name === 'transfer-callbacks' ? 'root' : basename(name)}.md`;
/** Returns the first sentence, or what stands before a list. */
const firstSentence = (doc: string): string => (doc.split(/(?<=\.)\s|(?<=:)\n-/)[0] ?? '').replace(/:$/, '.');
const toCell = (text: string): string => text.replaceAll('\n', ' ').replaceAll('|', String.raw`\|`);

function renderIndex(all: readonly EntryExports[]): ApiPage {
  const rows = all.map(({ entry, own, addresses }) => {
    const names = own.filter(({ kind }) => kind !== 'interface' && kind !== 'type').map(({ name }) => `\`${name}\``);
    if (addresses.size > own.length) names.push(`${addresses.size - own.length} exports of the entries above`);
    return `| [\`${entry.name}\`](${pageFile(entry)}) | ${names.join(', ')} |`;
  });
  const table = ['| entry | exports, without types |', '| --- | --- |', ...rows, ''].join('\n');
  return { file: 'README.md', text: `${notice}# API reference\n\nOne page for each entry point.\n\n${table}` };
}

function renderEntry({ entry, own, addresses }: EntryExports): ApiPage {
  const parts = [`${notice}# \`${entry.name}\`\n`];
  const toLink = (name: string): string => `[\`${name}\`](${(addresses.get(name) ?? '').replace(pageFile(entry), '')})`;
  if (own.length > 0) {
    parts.push('| export | | |', '| --- | --- | --- |');
    for (const { name, kind, doc } of own) parts.push(`| ${toLink(name)} | ${kind} | ${toCell(firstSentence(doc))} |`);
    parts.push('');
  }
  const others = [...addresses.keys()].filter((name) => own.every((each) => each.name !== name));
  if (others.length > 0) parts.push(`Also exported here: ${others.map(toLink).join(', ')}.`, '');
  for (const { name, doc, declaration } of own) {
    parts.push(`## ${name}`, '', doc, '', '```typescript', declaration, '```', '');
  }
  return { file: pageFile(entry), text: parts.join('\n') };
}

/** Returns the declaration files of the program, parsed, by the path of their source. */
function emitDeclarations(program: ts.Program): Map<string, ts.SourceFile> {
  const files = new Map<string, ts.SourceFile>();
  program.emit(undefined, (path, text, _bom, _onError, sources) => {
    const [source] = sources ?? [];
    if (source === undefined) return;
    files.set(source.fileName, ts.createSourceFile(path, text, ts.ScriptTarget.ES2022, true));
  });
  return files;
}

async function describe(
  name: string,
  symbol: ts.Symbol,
  checker: ts.TypeChecker,
  files: ReadonlyMap<string, ts.SourceFile>,
): Promise<Documented> {
  const doc = ts.displayPartsToString(symbol.getDocumentationComment(checker));
  const kind = kinds.find(([flag]) => (symbol.flags & flag) !== 0)?.[1] ?? 'export';
  const source = symbol.declarations?.[0]?.getSourceFile().fileName ?? '';
  const statements = files.get(source)?.statements.filter((statement) => declares(statement, symbol.name)) ?? [];
  if (statements.length === 0) throw new Error(`There is no declaration of ${symbol.name} in ${source}.`);
  const text = statements.map(toSource).join('\n');
  return {
    name,
    kind,
    doc,
    declaration: (await format(text, { parser: 'typescript', printWidth: 110, singleQuote: true })).trim(),
  };
}

function declares(statement: ts.Statement, name: string): boolean {
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.some((declaration) => declaration.name.getText() === name);
  }
  return (statement as ts.Statement & { name?: ts.Identifier }).name?.text === name;
}

/** Returns the statement without its own doc comment, and without what says that it is exported or has private parts. */
function toSource(statement: ts.Statement): string {
  return statement
    .getText()
    .replace(/^export /, '')
    .replace(/^declare /, '')
    .replace(/^ *#private;\n/m, '');
}
