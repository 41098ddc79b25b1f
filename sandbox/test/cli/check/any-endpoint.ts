import { readText, serveHere, type Book } from './support.js';

/** Serves an endpoint without a verifier. `read` returns what to book, under which name; `undefined` acknowledges only. */
export function serveAny(
  book: Book,
  read: (
    payload: never,
    header: (name: string) => string,
  ) => readonly [name: string, id: string, status: string] | number | undefined,
): Promise<string> {
  const seen = new Set<string>();
  return serveHere((request, response) => {
    void readText(request)
      .then(async (body) => {
        const found = read(JSON.parse(body) as never, (name) => String(request.headers[name]));
        if (typeof found === 'number') return found;
        if (found === undefined || seen.has(found[0] + found[2])) return 200;
        seen.add(found[0] + found[2]);
        await book({ data: { externalId: found[1], status: found[2] as 'SUCCESS' } });
        return 200;
      })
      .then(
        (status) => response.writeHead(status).end(),
        () => response.writeHead(400).end(),
      );
  });
}

export interface Razorpay {
  event: string;
  payload: { payout: { entity: { id: string; reference_id: string } } };
}
export const razorpay = ({ event, payload }: Razorpay, elsewhere: string | undefined) => {
  const { reference_id: id } = payload.payout.entity;
  const known: Record<string, string> = {
    'payout.processed': 'SUCCESS',
    'payout.reversed': 'REVERSED',
    'payout.failed': 'FAILED',
  };
  const status = known[event] ?? elsewhere;
  return status === undefined ? undefined : ([id, id, status] as const);
};
