// A Worker whose store is in memory, and so is made once. A GET asks for what has become of the callbacks.
import { memoryStore, transferCallbackHandler } from 'transfer-callbacks/web';

const store = memoryStore();
const counts = { handled: 0, followed: 0, typeOfTimer: 'unknown' };

export default {
  async fetch(request: Request, _env: object, context: { waitUntil(work: Promise<unknown>): void }): Promise<Response> {
    counts.typeOfTimer = typeof setTimeout(() => undefined);
    if (request.method === 'GET') return Response.json(counts);
    const handle = transferCallbackHandler({
      store,
      ...{ leaseMs: 1_000, storeTimeoutMs: 300 },
      async onSuccess({ data }, { afterCommit }) {
        afterCommit(() => (counts.followed += 1));
        if (data.reference === 'slow') await new Promise((resolve) => setTimeout(resolve, 1_500));
        counts.handled += 1;
      },
      onFailed: () => undefined,
    });
    return handle(request, context);
  },
};
