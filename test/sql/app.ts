/** A merchant's app as a separate process, whose handlers book through a library. See ledger.test.ts, refunds.test.ts. */
import { transferCallbackListener } from 'transfer-callbacks';
import { readAppOptions, serveAsApp } from '../support/programs/app.js';
import { serveLedger } from '../support/programs/ledger-handlers.js';
import { seededRandom, workByChance } from '../support/helpers/reversal-race.js';
import { reversingReceiver } from '../support/helpers/reversing.js';
import type { Dialect } from './databases.js';
import { drivers } from './drivers.js';
import { makeStore } from './factories.js';
import { prisma7 } from './prisma.js';

export interface AppOptions {
  /** Whether its service reverses successes. */
  readonly reverses: boolean;
  readonly library: string;
  readonly dialect: Dialect;
  readonly url: string;
  readonly port: number;
}

const { reverses, library: name, dialect, url, port } = readAppOptions() as AppOptions;
const library = [...drivers, prisma7].find((each) => each.name === name);
const opened = await library?.open[dialect]?.(url, reverses ? 10 : 16);
if (opened?.transaction === undefined) throw new Error(`${name} has no transaction on ${dialect}.`);
const { client, transaction } = opened;
const store = makeStore({ name }, client, dialect);

if (reverses) {
  const random = seededRandom(port);
  const { receiver } = reversingReceiver(store, {
    ...{ storeTimeoutMs: 1_000, leaseMs: 3_100, inFlightWaitMs: 1_000 },
    async handle(status, id, { tx }) {
      await workByChance(random);
      await transaction.write(tx, `${status} ${id}`);
    },
  });
  await serveAsApp(transferCallbackListener({ receiver }), port);
} else await serveLedger({ store, transaction, port });
