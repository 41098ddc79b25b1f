/**
 * Deletes every own `__proto__` key inside `value`, in place. `JSON.parse` makes such keys, and code that copies an
 * object key by key would set the copy's prototype from them: zod before 4.4 does. Throws a TypeError if the key is in a
 * frozen object.
 */
export function deleteProtoKeys(value: unknown): void {
  // A Set that grows while it is iterated: needs no recursion, so nesting of any depth and cycles are safe.
  const objects = new Set<object>();
  if (isObject(value)) objects.add(value);
  for (const object of objects) {
    if (Object.hasOwn(object, '__proto__')) delete (object as { __proto__?: unknown }).__proto__;
    for (const child of Object.values(object) as unknown[]) if (isObject(child)) objects.add(child);
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !ArrayBuffer.isView(value);
}
