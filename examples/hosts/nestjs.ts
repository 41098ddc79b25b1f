import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { transferCallbackRouter } from 'transfer-callbacks';
import { options } from './options.ts';

@Module({})
class AppModule {}

const app = await NestFactory.create(AppModule);
app.use('/callbacks/transfers', transferCallbackRouter(options)); // Before `listen`, which adds Nest's body parsers.
await app.listen(Number(process.env.PORT ?? 3000));
