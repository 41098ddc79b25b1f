import { Pool } from 'pg';
import { pgStore, transferCallbackHandler } from 'transfer-callbacks/web';
import { options } from './options.ts';

interface Environment {
  readonly HYPERDRIVE: { readonly connectionString: string };
}

interface Context {
  waitUntil(work: Promise<unknown>): void;
}

export default {
  async fetch(request: Request, { HYPERDRIVE }: Environment, context: Context): Promise<Response> {
    // A Worker cannot use the connections of another request: each request makes the pool, the store and the handler.
    const pool = new Pool({ connectionString: HYPERDRIVE.connectionString });
    const handle = transferCallbackHandler({ ...options, store: pgStore(pool) });
    const ip = request.headers.get('CF-Connecting-IP') ?? undefined;
    const works: Promise<void>[] = [];
    const response = await handle(Object.assign(request, { ip }), {
      waitUntil: (work: Promise<void>) => works.push(work),
    });
    // A late handler and `afterCommit` still use the pool.
    context.waitUntil(Promise.all(works).then(() => pool.end()));
    return response;
  },
};
