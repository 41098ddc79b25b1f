import { describe, expect, test } from 'vitest';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { errorBody } from '../support/post.js';
import { changed, expectRefused, received, shapes } from './callback-support.js';

describe('data.id', () => {
  const grapheme = 'e\u0301';
  test.each([
    ['one character', 'x'],
    ['255 characters', 'x'.repeat(255)],
    ['255 characters of four bytes', '😀'.repeat(255)],
    ['127 characters with an accent of their own', grapheme.repeat(127)],
    ['a space', ' '],
    ['quotes, slashes and braces', `"'\`\\/{}[]<>;:*?$`],
    ['a way up', '../../etc'],
    ['percent signs', '%00%2e%2e'],
    ['many scripts', 'é付款مرحباΩ'],
    ['names of fields that every object has', '__proto__'],
  ])('data.id may be %s', async (_what, id) => {
    const callback = transferSucceeded({ id });
    expect((await received(callback)).handled).toEqual([callback]);
  });

  test.each([
    ['empty', ''],
    ['256 characters', 'x'.repeat(256)],
    ['256 characters of four bytes', '😀'.repeat(256)],
    ['a megabyte', 'x'.repeat(1_000_000)],
    ['NUL', 'id\u0000'],
    ['a newline', 'id\n'],
    ['a carriage return', '\rid'],
    ['a tab', 'i\td'],
    ['escape', '\u001b[31mid'],
    ['delete', 'id\u007f'],
    ['a C1 control', 'id\u0085'],
    ['a lone high surrogate', 'id\ud83d'],
    ['a lone low surrogate', '\ude00id'],
    ['surrogates the wrong way round', '\ude00\ud83d'],
    ['a line separator', 'id\u2028'],
    ['a paragraph separator', '\u2029id'],
    ['a right-to-left mark', 'id\u200f'],
    ['a right-to-left override', 'id\u202egnp'],
    ['a right-to-left isolate', '\u2067id\u2069'],
    ['a zero width space', 'i\u200bd'],
    ['a zero width joiner', 'i\u200dd'],
    ['a soft hyphen', 'i\u00add'],
    ['a byte order mark', '\ufeffid'],
    ['an invisible tag', 'id\u{e0041}'],
  ])('a body of %s is refused', async (_what, id) => {
    const { outcome, status, handled, body } = await received(transferSucceeded({ id }));
    const issues = outcome.outcome === 'invalid' ? outcome.issues : [];
    expect(new Set(issues.map(({ path }) => path.join('.')))).toEqual(new Set(['data.id']));
    expect([status, body]).toEqual([400, errorBody(400, 'This is not a documented callback: see data.id.')]);
    expect(handled).toEqual([]);
  });
});

describe.each(shapes)('%s', (_shape, make) => {
  test.each([
    '2026-01-15T10:30:00.000Z',
    '2026-01-15T10:30:00.1Z',
    '2026-01-15T10:30:00.123456789Z',
    '2026-01-15T10:30:00Z',
    '2024-02-29T23:59:59.999Z',
    '1970-01-01T00:00:00.000Z',
    '9999-12-31T23:59:59.999Z',
  ])('a callback is accepted with data.timestamp %s', async (timestamp) => {
    expect((await received(changed(make(), { timestamp }))).handled[0]?.data.timestamp).toBe(timestamp);
  });

  test.each([
    '',
    'now',
    '2026-01-15',
    '10:30:00.000Z',
    '2026-01-15T10:30:00.000',
    '2026-01-15T10:30:00.000+00:00',
    '2026-01-15T10:30:00.000+01:00',
    '2026-01-15 10:30:00.000Z',
    '2026-01-15T10:30:00,000Z',
    '2026-01-15T10:30:00.Z',
    '2026-02-30T10:30:00.000Z',
    '2025-02-29T10:30:00.000Z',
    '2026-13-01T10:30:00.000Z',
    '2026-00-01T10:30:00.000Z',
    '2026-01-00T10:30:00.000Z',
    '2026-01-15T24:00:00.000Z',
    '2026-01-15T10:60:00.000Z',
    '2026-01-15T10:30:61.000Z',
    '2026-1-15T10:30:00.000Z',
    '26-01-15T10:30:00.000Z',
    '20260115T103000Z',
    ' 2026-01-15T10:30:00.000Z',
    '2026-01-15T10:30:00.000Z ',
    '2026-01-15T10:30:00.000Z\n',
    '２０２６-01-15T10:30:00.000Z',
    'Thu, 15 Jan 2026 10:30:00 GMT',
    '1768473000',
  ])('a callback is refused for data.timestamp %j', async (timestamp) => {
    await expectRefused(changed(make(), { timestamp }), 'data.timestamp');
  });
});
