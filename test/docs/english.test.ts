// The English of the README, of the documents and of comments, as far as a program can see it.
import { expect, test } from 'vitest';
import { listFiles, pages, readText, withoutBlocks, type Page } from './pages.js';

const documents = pages.filter(({ path }) => path.endsWith('README.md') || path.startsWith('docs/'));

interface Piece {
  readonly path: string;
  readonly text: string;
}

/** Returns the paragraphs, the items of lists and the rows of tables of a page, without headings. */
function findPieces(page: Page): Piece[] {
  return withoutBlocks(page)
    .replaceAll(/<!--.*?-->|^#.*$/gm, '')
    .split(/\n\s*\n|\n(?=\s*(?:- |\d+\. |\|))/)
    .map((text) => ({ path: page.path, text: text.trim().replaceAll(/\s+/g, ' ') }))
    .filter(({ text }) => text !== '');
}

const pieces = documents.flatMap(findPieces);
const isRow = ({ text }: Piece): boolean => text.startsWith('|');

/** Returns the sentences of a piece, without code and without marks before their first word. */
function findSentences({ path, text }: Piece): Piece[] {
  return text
    .replaceAll(/`[^`]*`/g, '`x`')
    .replaceAll(/\| \[[^\]]*\]\([^)]*\) (?=\|)/g, '| ') // a cell that is a link has the heading of a section
    .split(/ \| |(?<=[.?!:]\**) /)
    .map((sentence) => ({ path, text: sentence.replace(/^(?:- |\d+\. |[|*[\s])+/, '') }));
}

const sentences = pieces.flatMap(findSentences);
const show = ({ path, text }: Piece): string => `${path}: ${text}`;

test('the pages have sentences', () => {
  expect(sentences.length).toBeGreaterThan(1_500);
});

/** A noun is named again, «is no» is «is not a», and the field has its own words for what is refunded, reported or forged. */
const notPlain = new RegExp(
  [
    String.raw`\b(?:that|those) of\b`,
    String.raw`(?<!\bthere )\b(?:is|are|was|were|be) no (?!longer|more|one\b)[a-z]`,
    String.raw`\b(?:give[ns]?|gave|take[ns]?|took|pays?) (?:\w+ ){0,3}back\b`,
    String.raw`\bannounc|\bstrangers?\b|, too\b|\bthe like\b|\bfurther ones\b|\bsome \d+\b`,
  ].join('|'),
  'i',
);

test.each([
  ['no sentence begins with "Of"', /^Of /],
  ['no sentence has a bare "What … is" as its subject', /^What (?!.*\?)/],
  [
    'a string is a string, and "also if" is "even if"',
    /\balso if\b|\b(?:an?|the|each|every|other|another|given|one) texts?\b|\btexts\b/i,
  ],
  ['the pages name things again, in the words of the field', notPlain],
])('%s', (_title, wrong) => {
  expect(sentences.filter(({ text }) => wrong.test(text)).map(show)).toEqual([]);
});

test('no paragraph has more than 80 words', () => {
  const long = pieces.filter((piece) => !isRow(piece) && piece.text.split(' ').length > 80);
  expect(long.map(show)).toEqual([]);
});

/** The lines of comments, without those for a tool. */
const comments = ['src', 'sandbox/src']
  .flatMap((folder) => listFiles(folder, '.ts'))
  .flatMap((path) =>
    readText(path)
      .split('\n')
      .map((text, index) => ({ path: `${path}:${index + 1}`, text })),
  )
  .filter(({ text }) => /^\s*(?:\/\/|\/\*\*|\*) /.test(text) && !/eslint-disable|prettier-ignore/.test(text));

test('no comment begins with "Of", or calls a string a text', () => {
  expect(comments.length).toBeGreaterThan(2_000);
  const wrong = /(?:\/\/|\/\*\*|\.) Of |\b(?:[Aa]lso if|[Aa] text|[Tt]exts)\b/;
  expect(comments.filter(({ text }) => wrong.test(text)).map(show)).toEqual([]);
});

test('comments name things again, in the words of the field', () => {
  const isFree = ({ text }: Piece): boolean => /@default|`announced`/.test(text);
  expect(comments.filter((each) => !isFree(each) && notPlain.test(each.text)).map(show)).toEqual([]);
});

test('no comment is wider than 120 columns', () => {
  expect(comments.filter(({ text }) => text.length > 120).map(show)).toEqual([]);
});
