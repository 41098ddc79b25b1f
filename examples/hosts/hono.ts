import { serve } from '@hono/node-server';
import { getConnInfo } from '@hono/node-server/conninfo';
import { Hono } from 'hono';
import { transferCallbackHandler } from 'transfer-callbacks/web';
import { options } from './options.ts';

const handle = transferCallbackHandler(options);

const app = new Hono();
app.all('/callbacks/transfers', (context) =>
  handle(Object.assign(context.req.raw, { ip: getConnInfo(context).remote.address })),
);
serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000) });
