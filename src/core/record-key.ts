const longestKey = 255;
/** Begins the key of what was refunded. No id has this control character, so none has such a key. */
const reversalPrefix = 'reversed\u001f';

/**
 * Resolves with the key of a record: of the transfer with this key, or of its refund. A store has room for 255
 * characters: of a longer key it gets the SHA-256.
 */
export async function toRecordKey(key: string, record: 'reversal' | undefined): Promise<string> {
  if (record === undefined) return key;
  const joined = reversalPrefix + key;
  if (joined.length <= longestKey) return joined;
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(joined));
  return reversalPrefix + Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
