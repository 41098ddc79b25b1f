/** `[500, 200, 200]` as `500, 2 × 200`. */
export function inWords(entries: readonly (string | number)[]): string {
  const groups: { entry: string | number; count: number }[] = [];
  for (const entry of entries) {
    const last = groups.at(-1);
    if (last?.entry === entry) last.count += 1;
    else groups.push({ entry, count: 1 });
  }
  return groups.map(({ entry, count }) => (count > 1 ? `${count} × ${entry}` : entry)).join(', ') || 'nothing';
}
