// The sources and the entry points of the packages, as TypeScript sees them.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

/** The root of the repository. */
export const root = fileURLToPath(new URL('..', import.meta.url));

/** What a user imports from, such as `transfer-callbacks/client`. */
export interface Entry {
  readonly name: string;
  /** The path of its source file. */
  readonly source: string;
}

/** Returns the compiler options of tsconfig.json. */
export function readCompilerOptions(): ts.CompilerOptions {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), (path) => readFileSync(path, 'utf8')) as {
    config: object;
  };
  return ts.parseJsonConfigFileContent(config, ts.sys, root).options;
}

/** Returns all nodes of a source file, whose path begins at the root. The first one is the file. */
export function listNodes(path: string): ts.Node[] {
  const nodes: ts.Node[] = [];
  const visit = (node: ts.Node): void => {
    nodes.push(node);
    node.forEachChild(visit);
  };
  visit(ts.createSourceFile(path, readFileSync(join(root, path), 'utf8'), ts.ScriptTarget.Latest, true));
  return nodes;
}

/** Returns the entry points of both packages in the order of their package.json. */
export function listEntries(): Entry[] {
  return ['', 'sandbox'].flatMap((folder) => {
    const { name, exports } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as {
      name: string;
      exports: Record<string, unknown>;
    };
    return Object.keys(exports)
      .filter((path) => path !== './package.json')
      .map((path) => ({
        name: join(name, path),
        source: join(root, folder, 'src', `${path === '.' ? 'index' : path}.ts`),
      }));
  });
}

/** Returns what a module exports, with aliases resolved, by the name that users import. */
export function exportsOf(program: ts.Program, source: string): Map<string, ts.Symbol> {
  const checker = program.getTypeChecker();
  const file = program.getSourceFile(source);
  const module = file === undefined ? undefined : checker.getSymbolAtLocation(file);
  if (module === undefined) throw new Error(`Expected ${source} to be a module.`);
  const found = checker.getExportsOfModule(module).map((symbol): [string, ts.Symbol] => {
    const isAlias = (symbol.flags & ts.SymbolFlags.Alias) !== 0;
    return [symbol.name, isAlias ? checker.getAliasedSymbol(symbol) : symbol];
  });
  return new Map(found.sort(([a], [b]) => (a < b ? -1 : 1)));
}
