import { createServer } from 'node:http';
import { transferCallbackListener } from 'transfer-callbacks/node';
import { options } from './options.ts';

const listener = transferCallbackListener(options);

createServer((request, response) => {
  // A callback URL may have a query.
  if (request.url?.split('?')[0] === '/callbacks/transfers') listener(request, response);
  else response.writeHead(404).end();
}).listen(Number(process.env.PORT ?? 3000));
