// What is compared over sockets. `client` and `postgres` say what a variant keeps its record in.
const clients = ['ioredis', 'ioredis-auto', 'node-redis'];
export const L1 = 'express.json(), empty route';
export const safe = (client) => `by hand, safe: ${client}`;
export const powertools = 'powertools: node-redis';
export const transaction = (record) => `by hand, ${record}: Postgres`;

const rival = (name) => ({ name: `${name}: node-redis`, file: 'rivals.mjs', args: [name], client: 'node-redis' });
const postgres = (name, kind) => ({ name, file: 'postgres.mjs', args: [kind], postgres: true });

export const variants = [
  { name: L1, file: 'empty.mjs', args: ['express'] },
  { name: 'node:http, empty listener', file: 'empty.mjs', args: ['node'] },
  { name: 'router: memory', file: 'package.mjs', args: ['router'], own: true },
  { name: 'listener: memory', file: 'package.mjs', args: ['listener'], own: true },
  { name: 'by hand, unsafe: ioredis', file: 'by-hand.mjs', args: ['unsafe', 'ioredis'], client: 'ioredis' },
  ...clients.flatMap((client) => [
    { name: safe(client), file: 'by-hand.mjs', args: ['safe', client], client },
    { name: `router: ${client}`, file: 'package.mjs', args: ['router', client], client, own: true },
    { name: `listener: ${client}`, file: 'package.mjs', args: ['listener', client], client, own: true },
  ]),
  rival('powertools'),
  rival('express-idempotency'),
  rival('node-idempotency'),
  postgres(transaction('one column'), 'one column'),
  postgres(transaction('same row'), 'same row'),
  { ...postgres('router: Postgres', 'router'), own: true },
  { ...postgres('listener: Postgres', 'listener'), own: true },
];

/** What each variant is divided by. The safe minimum is the one on the variant's own client and settings. */
export const columns = [
  { title: '/ L1', baseOf: () => L1 },
  {
    title: '/ by hand',
    baseOf: ({ client, postgres }) => (postgres ? transaction('same row') : client && safe(client)),
  },
  { title: '/ powertools', baseOf: ({ client }) => (client === 'node-redis' ? powertools : undefined) },
  { title: '/ one column', baseOf: ({ postgres }) => (postgres ? transaction('one column') : undefined) },
];
