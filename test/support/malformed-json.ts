import { notUtf8, texts } from './malformed-json-data.js';

/**
 * The ways in which JSON can be broken (RFC 8259), written for this project. Each `text` or list of `bytes` is no JSON
 * by itself, and none either where a value is expected inside a larger text.
 */
export type Malformed =
  { readonly what: string; readonly text: string } | { readonly what: string; readonly bytes: readonly number[] };

const depth = 100_000;
const deep: Malformed[] = [
  { what: 'opening brackets without end', text: '['.repeat(depth) },
  { what: 'opening braces without end', text: '{'.repeat(depth) },
  { what: 'opening objects without end', text: '{"a":'.repeat(depth / 5) },
  { what: 'opening arrays of objects without end', text: '[{"":'.repeat(depth / 5) },
  { what: 'closing brackets', text: ']'.repeat(depth) },
  { what: 'closing braces', text: '}'.repeat(depth) },
  { what: 'one closing bracket too few', text: '['.repeat(depth / 2) + ']'.repeat(depth / 2 - 1) },
  { what: 'one closing bracket too many', text: '['.repeat(depth / 2 - 1) + ']'.repeat(depth / 2) },
  { what: 'the last closing bracket of another kind', text: `${'['.repeat(depth / 2)}${']'.repeat(depth / 2 - 1)}}` },
  { what: 'a string without end', text: `"${'a'.repeat(depth)}` },
  { what: 'a string of backslashes without end', text: `"${'\\'.repeat(depth)}` },
  { what: 'a number of minus signs', text: '-'.repeat(depth) },
  { what: 'a number of zeros', text: '0'.repeat(depth) },
  { what: 'commas', text: `[${','.repeat(depth)}]` },
  { what: 'spaces', text: ' '.repeat(depth) },
];

const quote = 0x22;

/** UTF-16 and UTF-32 without a mark are valid UTF-8, full of NULs. */
function wide(text: string, width: 2 | 4, littleEndian: boolean): number[] {
  return Array.from(text).flatMap((character) => {
    const unit = [character.charCodeAt(0), ...Array<number>(width - 1).fill(0)];
    return littleEndian ? unit : unit.reverse();
  });
}

export const malformedJson: readonly Malformed[] = [
  ...Object.entries(texts).flatMap(([kind, list]) =>
    list.map((text) => ({ what: `${kind}: ${JSON.stringify(text)}`, text })),
  ),
  ...deep,
  ...Object.entries(notUtf8).flatMap(([what, bytes]) => [
    { what: `${what}, alone`, bytes },
    { what: `${what}, in a string`, bytes: [quote, ...bytes, quote] },
    { what: `${what}, in a name`, bytes: [...Buffer.from('{"a'), ...bytes, ...Buffer.from('":1}')] },
    { what: `${what}, after a value`, bytes: [...Buffer.from('{}'), ...bytes] },
  ]),
  { what: 'UTF-16LE', bytes: wide('{"a":1}', 2, true) },
  { what: 'UTF-16BE', bytes: wide('{"a":1}', 2, false) },
  { what: 'UTF-32LE', bytes: wide('{"a":1}', 4, true) },
  { what: 'UTF-32BE', bytes: wide('{"a":1}', 4, false) },
  { what: 'two UTF-8 marks', bytes: [0xef, 0xbb, 0xbf, 0xef, 0xbb, 0xbf, 0x7b, 0x7d] },
  { what: 'half a UTF-8 mark', bytes: [0xef, 0xbb, 0x7b, 0x7d] },
  { what: 'gzip', bytes: [0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03] },
];

/** The bytes of an entry, as its own body. */
export function bytesOf(entry: Malformed): Buffer {
  return 'text' in entry ? Buffer.from(entry.text) : Buffer.from(entry.bytes);
}
