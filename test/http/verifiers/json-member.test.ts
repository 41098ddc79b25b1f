import { expect, test } from 'vitest';
import { parseBytes } from '../../../src/http/content.js';
import { findMember } from '../../../src/http/verifiers/json-member.js';
import fc from '../../support/helpers/fast-check.js';

const find = (body: string, name = 'data'): string | undefined => findMember(Buffer.from(body), name)?.toString();

test.each([
  ['white space around it', '\n{ "event" : "x" ,\t"data" :\r\n {"id": 1 } \n} ', '{"id": 1 }'],
  [
    'what JSON.stringify would write in another way',
    '{"data":{"a":1.50,"b":"\\u00e9\\/"}}',
    '{"a":1.50,"b":"\\u00e9\\/"}',
  ],
  ['a text', '{"data":" a "}', '" a "'],
  ['a number', '{"data":-1e3}', '-1e3'],
  ['null', '{"data":null,"a":1}', 'null'],
  ['a list', '{"a":[],"data":[1,{"data":2}]}', '[1,{"data":2}]'],
  ['braces, quotes and commas in texts', '{"a":"}\\",\\"data\\":1","data":"{\\\\","b":"]"}', '"{\\\\"'],
  ['the member in others, too', '{"a":{"data":1},"b":[{"data":2}],"data":3}', '3'],
  ['a text of that name', '{"a":"data","data":"b"}', '"b"'],
  ['an escaped key', '{"d\\u0061ta":1}', '1'],
  ['a key that is escaped wholly', '{"\\u0064\\u0061\\u0074\\u0061":1}', '1'],
  ['a byte order mark', '\ufeff{"data":1}', '1'],
  ['characters of many bytes', '{"付":"é","data":"😀\u00a0"}', '"😀\u00a0"'],
  ['a key that JavaScript has of its own', '{"__proto__":{"data":1},"data":2,"constructor":3}', '2'],
])('the member is found in a body with %s', (_what, body, member) => {
  expect(find(body)).toBe(member);
});

test.each(['__proto__', 'constructor', 'status', 'é', 'a.b', '"', '\\', '0'])('a member named %s is found', (name) => {
  const member = `${JSON.stringify(name)}:{"b":2}`;
  expect(find(`{"a":1,${member}}`, name)).toBe('{"b":2}');
  for (const body of ['{"a":1}', `{${member},}`, `[{${member}}]`]) expect(find(body, name)).toBeUndefined();
});

test.each([
  ['no such member', '{"event":"x","Data":1,"data ":1}'],
  ['the member twice', '{"data":1,"event":"x","data":1}'],
  ['the member twice, once escaped', '{"d\\u0061ta":1,"data":2}'],
  ['no members', '{}'],
  ['a list', '[{"data":1}]'],
  ['a text', '"data"'],
  ['null', 'null'],
  ['nothing', ''],
  ['no JSON', '{"data":1'],
  ['two values', '{"data":1}{"data":2}'],
  ['a comma too many', '{"data":1,}'],
  ['a comment', '{/*"data":0,*/"data":1}'],
])('nothing is found in a body with %s', (_what, body) => {
  expect(find(body)).toBeUndefined();
});

test('nothing is found in bytes that are no UTF-8', () => {
  for (const wrong of [[0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xe9]]) {
    const body = Buffer.concat([Buffer.from('{"data":"'), Buffer.from(wrong), Buffer.from('"}')]);
    expect(findMember(body, 'data')).toBeUndefined();
  }
});

test('the member is found in a part of a longer buffer', () => {
  const body = new Uint8Array(Buffer.from('before{"data":1}after')).subarray(6, 16);
  expect(findMember(body, 'data')?.toString()).toBe('1');
});

test('a long or deep body is read, whatever is in it', () => {
  const million = 1_000_000;
  for (const filling of ['"a",', '"\\"\\\\",', '[],', '{"data":1},', '":,{}",']) {
    const filled = filling.repeat(million / filling.length);
    expect(find(`{"a":[${filled}1],"data":2}`)).toBe('2');
  }
  expect(find(`{"a":"${'\\"'.repeat(5 * million)}","data":2}`)).toBe('2');
  const deep = `${'['.repeat(million / 10)}${']'.repeat(million / 10)}`;
  expect(find(`{"a":${deep},"data":2}`)).toBe('2');
});

/** JSON in any way of writing it. */
const blanks = fc.string({ unit: fc.constantFrom(' ', '\n', '\t', '\r'), maxLength: 2 });
const character = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }).map((text) => JSON.stringify(text).slice(1, -1)),
  fc.integer({ min: 0, max: 0xffff }).map((code) => `\\u${code.toString(16).padStart(4, '0')}`),
  fc.constantFrom(...['\\"', '\\\\', '\\/', '\\n', '{', '}', '[', ']', ':', ',', ' ', 'é', '😀', '\u00a0', '\u2028']),
);
const literal = fc.array(character, { maxLength: 5 }).map((characters) => `"${characters.join('')}"`);
const scalar = fc.oneof(
  literal,
  fc.constantFrom('0', '-1.50', '1E+2', '12345678901234567890', 'true', 'false', 'null'),
);
const escapable = fc
  .tuple(fc.constantFrom('data', 'data', 'data ', 'event', '__proto__', 'toString'), fc.array(fc.boolean()))
  .map(([name, escaped]) => {
    const escape = (at: number): string => `\\u${name.charCodeAt(at).toString(16).padStart(4, '0')}`;
    return `"${name.replace(/./g, (each, at: number) => (escaped[at] ? escape(at) : each))}"`;
  });
const key = fc.oneof({ weight: 3, arbitrary: escapable }, literal);
const spaced = fc.tuple(blanks, blanks, blanks, blanks);
interface Member {
  readonly key: string;
  readonly value: string;
  readonly text: string;
}
const memberOf = (value: fc.Arbitrary<string>): fc.Arbitrary<Member> =>
  fc.tuple(key, value, spaced).map(([name, written, [a, b, c, d]]) => ({
    ...{ key: name, value: written },
    text: `${a}${name}${b}:${c}${written}${d}`,
  }));
const objectOf = (members: readonly Member[]): string => `{${members.map(({ text }) => text).join(',')}}`;
const { value } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    scalar,
    fc.array(tie('value'), { maxLength: 3 }).map((items) => `[${items.join(' , ')}]`),
    fc.array(memberOf(tie('value')), { maxLength: 3 }).map(objectOf),
  ),
}));
const object = fc.tuple(blanks, fc.array(memberOf(value), { maxLength: 4 }), blanks);

test('of any object the bytes of the member are found as they were written, if it is there once', () => {
  let found = 0;
  const writes = fc.property(object, ([before, members, after]) => {
    const body = Buffer.from(`${before}${objectOf(members)}${after}`);
    const those = members.filter((each) => JSON.parse(each.key) === 'data');
    const expected = those.length === 1 ? those[0]?.value : undefined;
    const member = findMember(body, 'data');
    expect(member).toEqual(expected === undefined ? undefined : Buffer.from(expected));
    if (member === undefined) return;
    found += 1;
    const { data } = parseBytes(body).input as { data: unknown };
    expect(JSON.parse(member.toString())).toEqual(data);
  });
  fc.assert(writes, { numRuns: 2_000 });
  expect(found).toBeGreaterThan(200);
});

test('of any bytes that are near to JSON, what is found is what is handled, or nothing is', () => {
  let found = 0;
  const change = fc.record({ at: fc.nat(), length: fc.nat({ max: 2 }), put: fc.uint8Array({ maxLength: 2 }) });
  const changes = fc.property(object, change, ([before, members, after], { at, length, put }) => {
    const body = [...Buffer.from(`${before}${objectOf(members)}${after}`)];
    const ascii = [...put].map((byte) => '{}[]:,"\\ \n1a'.charCodeAt(byte % 24) || byte);
    body.splice(at % body.length, length, ...ascii);
    const member = findMember(Buffer.from(body), 'data');
    if (member === undefined) return;
    found += 1;
    const { data } = parseBytes(Buffer.from(body)).input as { data: unknown };
    expect(JSON.parse(member.toString())).toEqual(data);
  });
  fc.assert(changes, { numRuns: 2_000 });
  expect(found).toBeGreaterThan(50);
});
