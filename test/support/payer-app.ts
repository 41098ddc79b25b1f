/**
 * A merchant's app as a separate process, whose handlers write the effect of each transfer into Redis: what a handler
 * should do is done once even where it is run twice.
 */
import { once } from 'node:events';
import express from 'express';
import { Redis } from 'ioredis';
import { redisStore, transferCallbackReceiver, transferCallbackRouter } from 'transfer-callbacks';
import { effectsOn, payerOptions } from './payer.js';

const { redisUrl, port, run } = JSON.parse(process.env.PAYER ?? '{}') as {
  redisUrl: string;
  port: number;
  run: string;
};
const redis = new Redis(redisUrl);
const receiver = transferCallbackReceiver({ ...payerOptions, store: redisStore(redis), ...effectsOn(redis, run) });
const server = express().use('/callbacks', transferCallbackRouter({ receiver })).listen(port, '127.0.0.1');
await once(server, 'listening');
process.on('disconnect', () => process.exit());
process.send?.('listening');
