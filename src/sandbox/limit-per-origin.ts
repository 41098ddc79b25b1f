/** Returns a function that runs at most `limit` calls of `work` per origin concurrently. The others wait. */
export function limitPerOrigin(limit: number) {
  const origins = new Map<string, Origin>();

  return async function runInTurn<T>(url: string, work: () => Promise<T>): Promise<T> {
    const key = new URL(url).origin;
    const origin = origins.get(key) ?? { free: limit, waiting: [] };
    origins.set(key, origin);
    if (origin.free > 0) origin.free -= 1;
    else await new Promise<void>((resolve) => origin.waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = origin.waiting.shift();
      if (next === undefined) origin.free += 1;
      else next();
    }
  };
}

interface Origin {
  free: number;
  readonly waiting: (() => void)[];
}
