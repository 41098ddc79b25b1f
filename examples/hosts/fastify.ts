import fastify from 'fastify';
import { transferCallbackListener } from 'transfer-callbacks/node';
import { options } from './options.ts';

const listener = transferCallbackListener(options);

const app = fastify();
await app.register(async (scope) => {
  // In this scope Fastify leaves every body to the listener. Other routes keep their parsers.
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', (_request, _body, done) => done(null));
  scope.all('/callbacks/transfers', (request, reply) => {
    reply.hijack();
    listener(request.raw, reply.raw);
  });
});
await app.listen({ port: Number(process.env.PORT ?? 3000) });
