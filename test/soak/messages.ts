/** What a leak would make grow. */
export interface AppSize {
  /** Heap in use after garbage collection. */
  readonly heapBytes: number;
  /** Open connections of the server. */
  readonly connections: number;
  /** What keeps the process alive, by type: timers, sockets and so on. */
  readonly resources: Readonly<Record<string, number>>;
  /** Listeners on the process, the server and the Redis client. */
  readonly listeners: number;
}

export type AppMessage = { readonly port: number } | { readonly size: AppSize };
export type AppQuestion = 'size' | 'end';

const mark = '-fails-';

/** An external id that tells the handler how often to fail before it succeeds. */
export function externalIdWith(failures: number): string {
  return `${crypto.randomUUID()}${mark}${failures}`;
}

export function failuresIn(externalId: string): number {
  return Number(externalId.split(mark)[1]);
}
