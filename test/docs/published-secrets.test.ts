import ts from 'typescript';
import { expect, test } from 'vitest';
import { findBlocks, listFiles, pages, readText } from './pages.js';

// Every reader knows a secret of the documentation, and would copy it with the rest.

const pageBlocks = pages.flatMap((page) => findBlocks(page, 'ts')).map(({ at, code }): [string, string] => [at, code]);
const examples = listFiles('examples', '.ts')
  .filter((file) => !file.endsWith('.test.ts'))
  .map((file): [string, string] => [file, readText(file)]);

/** At which argument each verifier takes its secret. */
const secretArgument: Record<string, number> = { urlToken: 0, transferToken: 0, headerToken: 1, basicAuth: 0 };

/** The string literals that the secret of a verifier may be, in a program. */
function findPublishedSecrets(code: string): string[] {
  const source = ts.createSourceFile('block.ts', code, ts.ScriptTarget.ES2022, true);
  const initializers = new Map<string, ts.Expression>();
  const secrets: ts.Expression[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isVariableDeclaration(node) && ts.isIdentifier(node.name) && node.initializer !== undefined) {
      initializers.set(node.name.text, node.initializer);
    }
    if (ts.isCallExpression(node)) {
      const secret = node.arguments[secretArgument[node.expression.getText()] ?? -1];
      if (secret !== undefined) secrets.push(secret);
    }
    node.forEachChild(visit);
  };
  visit(source);
  return secrets.flatMap((secret) => literalsOf(secret, initializers));
}

/** The string literals that an expression may evaluate to; those inside a call or an index are none. */
function literalsOf(node: ts.Node, initializers: ReadonlyMap<string, ts.Expression>): string[] {
  if (ts.isStringLiteralLike(node)) return [node.text];
  if (ts.isCallExpression(node) || ts.isPropertyAccessExpression(node) || ts.isElementAccessExpression(node)) return [];
  if (ts.isPropertyAssignment(node)) {
    return node.name.getText() === 'username' ? [] : literalsOf(node.initializer, initializers);
  }
  if (ts.isIdentifier(node)) {
    const initializer = initializers.get(node.text);
    return initializer === undefined ? [] : literalsOf(initializer, initializers);
  }
  const found: string[] = [];
  node.forEachChild((child) => {
    found.push(...literalsOf(child, initializers));
  });
  return found;
}

test.each([
  ["urlToken('a literal')", ['a literal']],
  ["transferToken(process.env.SECRET ?? 'a literal')", ['a literal']],
  ["transferToken([process.env.SECRET, 'a literal'])", ['a literal']],
  ["const secret = 'a literal'; urlToken(secret)", ['a literal']],
  ["headerToken('x-token', test ? `a literal` : other)", ['a literal']],
  ["basicAuth({ username: 'service', password: 'a literal' })", ['a literal']],
  ["basicAuth([{ username: 'service', password: process.env['PASSWORD'] || 'a literal' }])", ['a literal']],
  ["headerToken('x-token', process.env['SECRET'])", []],
  ["urlToken(fromEnvironment('SECRET'))", []],
  ["transferToken([process.env.SECRET, process.env.SECRET_PREVIOUS]).urlFor('https://a.example', 'payout-1')", []],
])('in %s the secrets %j are found', (code, expected) => {
  expect(findPublishedSecrets(code)).toEqual(expected);
});

test('the documentation makes verifiers', () => {
  const all = [...pageBlocks, ...examples].map(([, code]) => code).join('\n');
  for (const verifier of ['urlToken(', 'transferToken(', 'headerToken(']) expect(all).toContain(verifier);
});

test.each([...pageBlocks, ...examples])('%s publishes no secret', (_name, code) => {
  expect(findPublishedSecrets(code)).toEqual([]);
});
