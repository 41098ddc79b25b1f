/** A time to the second, such as `2026-10-05 02:41:07 UTC`. */
export function toUtc(at: Date): string {
  return `${at.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

const units = [
  ['s', 1_000, 120],
  ['min', 60_000, 120],
  ['h', 3_600_000, 48],
  ['days', 86_400_000, Infinity],
] as const;

/** How long ago, such as `17 min ago`. A time that has not come yet was 0 s ago: two clocks differ. */
export function toAge(at: Date): string {
  return `${toDuration(Math.max(0, Date.now() - at.getTime()))} ago`;
}

/**
 * Returns the age of a time of the service, whose clock may be far ahead, such as the clock of a sandbox with
 * `--speed`.
 */
export function toServiceAge(at: Date): string {
  const aheadMs = at.getTime() - Date.now();
  return aheadMs < 1_000 ? toAge(at) : `in ${toDuration(aheadMs)} by the service's clock`;
}

function toDuration(durationMs: number): string {
  const [name, ms] = units.find(([, unitMs, most]) => durationMs < most * unitMs) ?? units[3];
  return `${Math.floor(durationMs / ms)} ${name}`;
}
