// The tables of outcomes in the documents, written from `src/core/outcomes.ts` and its comments: `vitest run … -u`.
import { join } from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { listNodes } from '../../scripts/entries.js';
import { outcomes } from '../../src/core/outcomes.js';
import { readText, root } from './pages.js';

const nodes = listNodes('src/core/outcomes.ts');

/** Returns the doc comment of a node, on one line and without the full stop at its end. */
function readComment(node: ts.Node): string {
  const [comment] = ts.getJSDocCommentsAndTags(node).map((each) => ts.getTextOfJSDocComment(each.comment) ?? '');
  return (comment ?? '').replaceAll(/\s+/g, ' ').replace(/\.$/, '');
}

/** Returns the comment and the level of each row of a table. */
function readRows(table: string): { name: string; comment: string; level: string | undefined }[] {
  const declaration = nodes.filter(ts.isVariableDeclaration).find(({ name }) => name.getText() === table);
  const text = declaration?.getText() ?? expect.fail(`There is no ${table}.`);
  const rows = nodes
    .filter(ts.isPropertyAssignment)
    .filter((node) => ts.isObjectLiteralExpression(node.initializer) && text.includes(node.getText()));
  return rows.map((row) => ({
    name: row.name.getText(),
    comment: readComment(row),
    level: /level: '(\w+)'/.exec(row.getText())?.[1],
  }));
}

const rows = readRows('outcomes').map((row) => {
  const { status, ...response } = outcomes[row.name as keyof typeof outcomes];
  const retries = 'retryAfter' in response ? ' + Retry-After' : '';
  const [, meaning = '', next = ''] = /^(.*)\. (.*)$/.exec(row.comment) ?? [];
  return { ...row, status: `${status}${retries}`, meaning, next: next.replace('The payout service ', '') };
});

const levels = ['info', 'warn', 'error'].flatMap((level) => {
  const names = rows.filter((row) => row.level === level).map(({ name }) => `\`${name}\``);
  const special = readRows('special').filter((row) => row.level === level);
  return [names.join(', '), ...special.map(({ comment }) => comment)].map((cell) => [`\`${level}\``, cell]);
});

const outcomeRows = rows.map(({ name, status, meaning, next }) => [`\`${name}\``, status, meaning, next]);

test.each([
  ['docs/handlers.md', ['outcome', 'status', 'what has happened', 'the payout service'], outcomeRows],
  ['docs/logs-and-metrics.md', ['level', 'outcomes'], levels],
])('%s has the table of outcomes', async (page, head, cells) => {
  const toLine = (row: readonly string[]): string => `| ${row.join(' | ')} |\n`.replaceAll('|  |', '| |');
  const lines = [head, head.map(() => '---'), ...cells].map(toLine);
  const text = readText(page);
  const [table = expect.fail(`${page} has no table of ${head.join(', ')}.`)] =
    new RegExp(`^${lines[0]?.replaceAll('|', '\\|') ?? ''}(\\|.*\\n)+`, 'm').exec(text) ?? [];
  await expect(text.replace(table, () => lines.join(''))).toMatchFileSnapshot(join(root, page));
});
