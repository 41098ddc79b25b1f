/**
 * Deletes every own `__proto__` key inside `value`, in place. `JSON.parse` makes such keys, and zod before 4.4 sets
 * the prototype of its copy from them, as `Object.assign` does. Throws a TypeError if the key is in a frozen object.
 */
export function deleteProtoKeys(value: unknown): void {
  // A Set that grows during its iteration replaces recursion, so deep nesting and cycles are safe.
  const objects = new Set<object>();
  if (isObject(value)) objects.add(value);
  for (const object of objects) {
    delete (object as { __proto__?: unknown }).__proto__;
    for (const child of Object.values(object) as unknown[]) if (isObject(child)) objects.add(child);
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !ArrayBuffer.isView(value);
}
