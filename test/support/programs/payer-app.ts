/**
 * A merchant's app as a separate process, whose handlers write the effect of each transfer into Redis: what a handler
 * should do is done once even where it is run twice.
 */
import express from 'express';
import { Redis } from 'ioredis';
import { redisStore, transferCallbackReceiver, transferCallbackRouter } from 'transfer-callbacks';
import { effectsOn, payerOptions } from './payer.js';
import { readAppOptions, serveAsApp } from './app.js';

const { redisUrl, port, run } = readAppOptions() as {
  redisUrl: string;
  port: number;
  run: string;
};
const redis = new Redis(redisUrl);
const receiver = transferCallbackReceiver({ ...payerOptions, store: redisStore(redis), ...effectsOn(redis, run) });
await serveAsApp(express().use('/callbacks', transferCallbackRouter({ receiver })), port);
