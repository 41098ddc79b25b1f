import { transferCallbackHandler } from 'transfer-callbacks/web';
import { options } from './options.ts';

const handle = transferCallbackHandler(options);

Bun.serve({
  port: Number(process.env.PORT ?? 3000),
  routes: {
    '/callbacks/transfers': (request, server) =>
      handle(Object.assign(request, { ip: server.requestIP(request)?.address })),
  },
});
