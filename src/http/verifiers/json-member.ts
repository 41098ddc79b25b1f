/**
 * Returns the bytes of a top-level member of a JSON object, as they were received: `JSON.stringify` of its value may be
 * another string. Returns `undefined` if the body is no such object, or has the member not at all or twice.
 */
export function findMember(body: Uint8Array, name: string): Buffer | undefined {
  if (!Object.hasOwn(parseObject(body), name)) return undefined;
  // In Latin-1 a character is a byte. A byte of UTF-8 that looks like ASCII is ASCII.
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('latin1');
  const [found, ...others] = splitMembers(text).filter(({ key }) => JSON.parse(toBytes(key).toString()) === name);
  return found !== undefined && others.length === 0 ? toBytes(found.value) : undefined;
}

/** Parses the body as it is parsed for its handler. Returns an empty object if the body is no JSON object. */
function parseObject(body: Uint8Array): object {
  try {
    // It drops a byte order mark, on which `JSON.parse` throws.
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
  } catch {
    return {};
  }
}

/** Splits a valid JSON object that is not empty into its members. */
function splitMembers(text: string): { readonly key: string; readonly value: string }[] {
  const members = [];
  let start = text.indexOf('{') + 1;
  let key = '';
  let depth = 1;
  let isQuoted = false;
  for (let at = start; depth > 0 && at < text.length; at += 1) {
    const character = text.charAt(at);
    // An escaped character neither ends nor begins a string.
    if (character === '\\') at += 1;
    if (character === '"') isQuoted = !isQuoted;
    if (isQuoted) continue;
    if (character === '{' || character === '[') depth += 1;
    if (character === '}' || character === ']') depth -= 1;
    if (depth === 1 && character === ':') {
      key = text.slice(start, at).trim();
      start = at + 1;
    } else if (depth === 0 || (depth === 1 && character === ',')) {
      members.push({ key, value: text.slice(start, at).trim() });
      start = at + 1;
    }
  }
  return members;
}

function toBytes(text: string): Buffer {
  return Buffer.from(text, 'latin1');
}
