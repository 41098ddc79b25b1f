// deno run --allow-net --allow-env --allow-sys=hostname deno.ts
import { transferCallbackHandler } from 'transfer-callbacks/web';
import { options } from './options.ts';

const handle = transferCallbackHandler(options);

Deno.serve({ port: Number(process.env.PORT ?? 3000) }, (request, { remoteAddr }) =>
  new URL(request.url).pathname === '/callbacks/transfers'
    ? handle(Object.assign(request, { ip: remoteAddr.hostname }))
    : new Response(null, { status: 404 }),
);
