// What there is to compare with: a route that does nothing, in Express and on node:http alone.
import express from 'express';
import { path } from '../callback.mjs';
import { serve } from './serve.mjs';

const [, , kind] = process.argv;

if (kind === 'express') {
  const app = express();
  app.use(express.json());
  app.post(path, (_request, response) => {
    response.sendStatus(200);
  });
  serve(app);
} else {
  serve((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      JSON.parse(Buffer.concat(chunks).toString());
      response.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': 2 }).end('OK');
    });
  });
}
