import Koa from 'koa';
import { transferCallbackListener } from 'transfer-callbacks/node';
import { options } from './options.ts';

const listener = transferCallbackListener(options);

const app = new Koa();
app.use((context, next) => {
  if (context.path !== '/callbacks/transfers') return next();
  context.respond = false; // The listener responds.
  return listener(context.req, context.res);
});
app.listen(Number(process.env.PORT ?? 3000));
