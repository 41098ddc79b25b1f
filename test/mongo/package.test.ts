import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { compile, install, installed, makeWorkshop, packageName, repository, run, stepMs } from '../package/support.js';
import { startMongo, type MongoServer } from './servers.js';

const program = `
import mongoose from 'mongoose';
import { mongoStore, transferCallbackReceiver } from '${packageName}/node';
import { transferSucceeded } from '${packageName}/testing';

interface Payout { of: string; paid: boolean }
const Payout = mongoose.model('Payout', new mongoose.Schema<Payout>({ of: String, paid: Boolean }));
await mongoose.connect(process.env.MONGODB_URL ?? '');
await Payout.createCollection();
const store = mongoStore(mongoose.connection.getClient());
await store.migrate();
const receiver = transferCallbackReceiver({
  store,
  async onSuccess({ data }, { tx }) {
    await Payout.create([{ of: data.id, paid: false }], { session: tx });
    await Payout.updateOne({ of: data.id }, { paid: true }, { session: tx });
    if (data.externalId === 'unknown') throw new Error('no payout');
  },
  onFailed: () => undefined,
  logger: false,
});
const seen: unknown[] = [];
for (const callback of [transferSucceeded(), transferSucceeded({ externalId: 'unknown' })]) {
  for (let time = 0; time < 2; time += 1) seen.push((await receiver.receive(callback)).outcome);
  seen.push((await Payout.find({ of: callback.data.id })).map(({ paid }) => paid));
}
console.log(JSON.stringify(seen));
await receiver.close();
await mongoose.disconnect();
`;

let workshop: string;
let server: MongoServer;
beforeAll(async () => {
  [workshop, server] = await Promise.all([makeWorkshop(), startMongo()]);
});
afterAll(async () => {
  await Promise.all([rm(workshop, { recursive: true, force: true }), server.stop()]);
});

test(
  'in an empty folder the package and Mongoose compile strictly, and a model writes with the record',
  async () => {
    const versions = { mongoose: await installed('mongoose'), zod: await installed('zod') };
    const types = { '@types/node': await installed('@types/node') };
    await install(workshop, {
      type: 'module',
      dependencies: { [packageName]: `file:${inject('tarball')}`, ...versions, ...types },
    });
    const compilerOptions = { target: 'ES2022', module: 'NodeNext', types: ['node'], strict: true, skipLibCheck: true };
    await writeFile(join(workshop, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['main.ts'] }));
    await writeFile(join(workshop, 'main.ts'), program);
    expect(await compile(workshop, join(repository, 'node_modules/typescript'))).toEqual([]);
    const printed = await run(process.execPath, ['main.js'], workshop, { MONGODB_URL: server.url });
    expect(JSON.parse(printed)).toEqual(['processed', 'duplicate', [true], 'handler_failed', 'handler_failed', []]);
  },
  stepMs,
);
