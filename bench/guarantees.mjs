// Which faults each route of the benchmark survives: real processes that are killed and frozen, on a real Redis and PostgreSQL.
import { request } from 'node:http';
import { path } from './callback.mjs';
import { startPostgres, startRedis } from './support/databases.mjs';
import { startNode, stop } from './support/processes.mjs';
import { firstRetryMs, patienceMs, situations } from './support/situations.mjs';

const contenders = [
  { name: 'this package, Redis', file: 'package.mjs', args: ['router', 'node-redis'] },
  { name: 'this package, PostgreSQL', file: 'postgres.mjs', args: ['router'], postgres: true },
  { name: 'by hand: SET NX before, SET after', file: 'by-hand.mjs', args: ['safe', 'node-redis'] },
  { name: 'by hand: one SET NX', file: 'by-hand.mjs', args: ['unsafe', 'node-redis'] },
  { name: 'by hand: PostgreSQL transaction', file: 'postgres.mjs', args: ['same row'], postgres: true },
  { name: 'powertools', file: 'powertools.mjs', args: [] },
];

/** A server under test whose handler waits until it is told how to end. */
class App {
  #process;
  #runs = new Map();
  #verdicts = new Map();

  /** Starts `file` of servers/ with its arguments. */
  static async start({ file, args }, env) {
    return new App(await startNode(`servers/${file}`, args, { env: { ...env, HANDLER: 'told' } }));
  }

  constructor(process) {
    this.#process = process;
    process.child.on('message', ({ handling }) => {
      this.#runs.set(handling, this.runs(handling) + 1);
      if (!this.#verdicts.has(handling)) this.tell(handling, 'succeed');
      else if (this.#verdicts.get(handling) !== 'wait') this.tell(handling, this.#verdicts.get(handling));
    });
  }

  /** How often the handler was run for this id. */
  runs(id) {
    return this.#runs.get(id) ?? 0;
  }

  /** From now on the handler of this id ends like this: `succeed` (the default), `fail`, or not until `tell`: `wait`. */
  expect({ data }, verdict) {
    this.#verdicts.set(data.id, verdict);
  }

  /** Ends the running handler of this id. */
  tell(id, how) {
    this.#process.child.send({ id, how });
  }

  /** Makes one attempt. Resolves with the status, or with `undefined` where there was no response in time. */
  deliver(callback, timeout = firstRetryMs) {
    return new Promise((resolve) => {
      const options = { port: this.#process.ready, path, method: 'POST', agent: false, timeout };
      const sent = request({ ...options, headers: { 'Content-Type': 'application/json' } }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      sent.on('timeout', () => sent.destroy());
      sent.on('close', () => resolve(undefined)).on('error', () => undefined);
      sent.end(JSON.stringify(callback));
    });
  }

  /** Makes one attempt whose handler waits. Resolves with the response to come when the handler has begun. */
  async deliverAndHold(callback) {
    this.expect(callback, 'wait');
    const status = this.deliver(callback, 4 * firstRetryMs);
    const giveUpAt = performance.now() + patienceMs;
    while (this.runs(callback.data.id) === 0) {
      if (performance.now() > giveUpAt) throw new Error('The handler did not begin.');
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return { status };
  }

  signal(signal) {
    this.#process.child.kill(signal);
  }

  async kill() {
    await stop(this.#process);
  }
}

/**
 * Puts every contender through every situation. Resolves with `{ name, cells }`; a cell is `{ title, holds, seen }`.
 * `quick` leaves out the situations that wait for the service's first retry.
 */
export async function testGuarantees({ only, quick }) {
  const groups = [situations.filter(({ slow }) => !slow), ...(quick ? [] : [situations.filter(({ slow }) => slow)])];
  return Promise.all(contenders.filter(({ name }) => only.test(name)).map((each) => testContender(each, groups)));
}

/** The situations of a group run at the same time. */
async function testContender(contender, groups) {
  const store = contender.postgres ? await startPostgres() : await startRedis();
  const env = contender.postgres ? { POSTGRES_URL: store.url } : { REDIS_PORT: String(store.port) };
  const apps = [];
  try {
    for (let each = 0; each < 3; each += 1) apps.push(await App.start(contender, env));
    const [first, second, victim] = apps;
    // Without the transaction of a database nothing takes back what a run of the handler has written.
    const countWrites = async ({ data: { id, externalId } }) => {
      if (!contender.postgres) return first.runs(id) + second.runs(id);
      return (await store.pool().query('SELECT FROM ledger WHERE payout = $1', [externalId])).rowCount;
    };
    const stage = { first, second, victim, countWrites };
    const cells = [];
    for (const group of groups) {
      cells.push(...(await Promise.all(group.map((situation) => runSituation(situation, stage)))));
    }
    return { name: contender.name, cells };
  } finally {
    for (const app of apps) {
      app.signal('SIGCONT');
      await app.kill();
    }
    await store.stop();
  }
}

async function runSituation({ title, run }, stage) {
  try {
    return { title, ...(await run(stage)) };
  } catch (error) {
    return { title, holds: false, seen: `the test ended: ${error.message}` };
  }
}

export const markOf = (holds) => (holds === undefined ? '–' : holds ? '✓' : '✗');
