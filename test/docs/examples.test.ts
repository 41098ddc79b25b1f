import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transferToken } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { kill, tied } from '../support/child.js';
import { post } from '../support/post.js';
import { head } from '../support/sockets.js';
import { freePort } from '../support/port.js';
import { startRedis } from '../support/redis.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

type Environment = Record<string, string | undefined>;

interface Run {
  /** What it has printed until now, on both streams. */
  readonly output: () => string;
  /** Answers the first match in what it prints; rejects if it ends without. */
  readonly said: (pattern: RegExp) => Promise<RegExpExecArray>;
  /** Answers the exit code; `null` for a signal. */
  readonly exitCode: Promise<number | null>;
  readonly send: (signal: NodeJS.Signals) => void;
}

/** Runs an example as a user would, without this machine's own REDIS_URL. */
function run(example: string, environment: Environment = {}, cwd = root): Run {
  const child = tied(
    spawn(process.execPath, ['--import', 'tsx', `examples/${example}`], {
      cwd,
      env: { ...process.env, REDIS_URL: undefined, PORT: undefined, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
  );
  onTestFinished(() => kill(child));
  let printed = '';
  const ended = once(child, 'close').then(([code]) => code as number | null);
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
      child.emit('printed');
    });
  }
  return {
    output: () => printed,
    exitCode: ended,
    send: (signal) => child.kill(signal),
    said: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = pattern.exec(printed);
          if (found === null) return;
          child.off('printed', look);
          resolve(found);
        };
        child.on('printed', look);
        look();
        void ended.then((code) => {
          reject(new Error(`${example} ended with ${code} before it said ${pattern.source}:\n${printed}`));
        });
      }),
  };
}

/** Runs an example that serves on PORT, on a free one. Answers what it says when it listens. */
async function serve(example: string, environment: Environment = {}): Promise<Run & { url: string }> {
  for (;;) {
    const started = run(example, { ...environment, PORT: String(await freePort()) });
    const [url] = await started.said(/http:\/\/localhost:\S+(?=\s)|EADDRINUSE/);
    // Somebody else was faster to take the port.
    if (url !== 'EADDRINUSE') return { ...started, url: url.replace('localhost', '127.0.0.1') };
  }
}

async function redisUrl(): Promise<string> {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  return redis.url;
}

const processed = { status: 200, body: '{"outcome":"processed"}' };
const duplicate = { status: 200, body: '{"outcome":"duplicate"}' };

describe('the examples', () => {
  it('every example is run by this file, by those beside it or by vitest', async () => {
    const files = await readdir(join(root, 'examples'));
    const tests = ['examples', 'postgres-examples', 'custom-store', 'tracing-example'].map((name) => `${name}.test.ts`);
    const text = (await Promise.all(tests.map((file) => readFile(join(root, 'test/docs', file), 'utf8')))).join('\n');
    // `payouts.ts` stands for the user's own code and is run by the others.
    const examples = files.filter((file) => /(?<!\.test)\.ts$/.test(file) && file !== 'payouts.ts');
    expect(examples.filter((file) => !text.includes(`${file}'`))).toEqual([]);
  });
});

describe('quick-start.ts', () => {
  it('quick-start.ts handles a success and a failure once each', async () => {
    const { url, said, output } = await serve('quick-start.ts');
    const success = transferSucceeded({ externalId: 'payout-1', amount: 900 });
    const failure = transferFailed({ externalId: 'payout-2', failureReason: 'Wallet closed' });

    expect(await post(url, success)).toMatchObject(processed);
    expect(await post(url, failure)).toMatchObject(processed);
    expect(await post(url, success)).toMatchObject(duplicate);

    await said(/Refunded payout-2: Wallet closed/);
    expect(output().match(/Paid payout-1: 900/g)).toHaveLength(1);
  });

  it('quick-start.ts fails when its port is taken, and does not print that it listens', async () => {
    const server = createServer().listen(0);
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;

    const { exitCode, output } = run('quick-start.ts', { PORT: String(port) });

    expect(await exitCode).toBe(1);
    expect(output()).toContain('EADDRINUSE');
    expect(output()).not.toContain('received');
  });
});

describe('redis.ts', () => {
  it('redis.ts recognises in one process what another one has handled', async () => {
    const REDIS_URL = await redisUrl();
    const [one, other] = await Promise.all([serve('redis.ts', { REDIS_URL }), serve('redis.ts', { REDIS_URL })]);
    const callback = transferSucceeded();

    expect(await post(one.url, callback)).toMatchObject(processed);
    expect(await post(other.url, callback)).toMatchObject(duplicate);
    expect(other.output()).not.toContain('Paid');
  });

  it('redis.ts recovers after Redis has vanished without closing the connection', async () => {
    const network = await startNetwork(new URL(await redisUrl()));
    const { url } = await serve('redis.ts', { REDIS_URL: network.url });
    expect(await post(url, transferSucceeded())).toMatchObject(processed);

    network.freeze();
    const callback = transferSucceeded();
    const statuses = [(await post(url, callback)).status];
    expect(statuses).toEqual([503]);
    while (statuses.at(-1) === 503) statuses.push((await post(url, callback)).status);

    expect(statuses.at(-1)).toBe(200);
  });
});

describe('node-redis.ts', () => {
  it('node-redis.ts recognises after a restart what it has handled', async () => {
    const REDIS_URL = await redisUrl();
    const callback = transferSucceeded();

    expect(await post((await serve('node-redis.ts', { REDIS_URL })).url, callback)).toMatchObject(processed);
    expect(await post((await serve('node-redis.ts', { REDIS_URL })).url, callback)).toMatchObject(duplicate);
  });

  it('node-redis.ts processes a callback at its third attempt after Redis has vanished without closing the connection', async () => {
    const network = await startNetwork(new URL(await redisUrl()));
    const { url } = await serve('node-redis.ts', { REDIS_URL: network.url });
    expect(await post(url, transferSucceeded())).toMatchObject(processed);

    network.freeze();
    const callback = transferSucceeded();
    for (const status of [503, 503, 200]) expect(await post(url, callback)).toMatchObject({ status });
  });
});

/** A network in front of Redis. `freeze` silences the connections that are open; new ones work. */
async function startNetwork({ port: redisPort, hostname }: URL): Promise<{ url: string; freeze: () => void }> {
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(Number(redisPort), hostname);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
    }
    near.pipe(far).pipe(near);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    freeze() {
      for (const socket of sockets) socket.unpipe().pause();
    },
  };
}

describe('metrics.ts', () => {
  it('metrics.ts counts a callback in the metrics that Prometheus reads', async () => {
    const { url } = await serve('metrics.ts');
    const callbackUrl = url.replace(/,$/, '');
    expect(await post(callbackUrl, transferSucceeded())).toMatchObject(processed);
    const metrics = await fetch(new URL('/metrics', callbackUrl));
    expect(metrics.headers.get('content-type')).toContain('text/plain; version=0.0.4');
    expect(await metrics.text()).toContain(
      'transfer_callbacks_deliveries_total{outcome="processed",source="http"} 1\n',
    );
  });
});

describe('secure.ts', () => {
  const secrets = {
    TRANSFER_SECRET: 'the-new-transfer-secret',
    TRANSFER_SECRET_PREVIOUS: 'the-old-transfer-secret',
    URL_SECRET: 'the-secret-of-the-url',
    GATEWAY_SECRET: 'the-secret-of-the-gateway',
  };

  it('secure.ts accepts the URL of a transfer for this transfer only', async () => {
    const { url } = await serve('secure.ts');

    expect(await post(url, transferSucceeded({ externalId: 'payout-1' }))).toMatchObject(processed);
    expect(await post(url, transferSucceeded({ externalId: 'payout-2' }))).toMatchObject({ status: 401 });
    expect(await post(new URL('.', url).href, transferSucceeded({ externalId: 'payout-1' }))).toMatchObject({
      status: 401,
    });
  });

  it('secure.ts still accepts a URL that was made with the previous secret', async () => {
    const { url } = await serve('secure.ts', secrets);
    const callback = transferSucceeded();
    const madeWith = (secret: string): string =>
      transferToken(secret).urlFor(new URL('/callbacks/transfers', url).href, callback.data.externalId);

    expect(await post(madeWith(secrets.TRANSFER_SECRET_PREVIOUS), callback)).toMatchObject(processed);
    expect(await post(madeWith(secrets.TRANSFER_SECRET), callback)).toMatchObject(duplicate);
    expect(await post(madeWith('the-secret-before-those'), callback)).toMatchObject({ status: 401 });
  });

  it('secure.ts accepts the shared URL, with the same record of handled callbacks', async () => {
    const { url } = await serve('secure.ts', secrets);
    const callback = transferSucceeded({ externalId: 'payout-1' });

    expect(await post(url, callback)).toMatchObject(processed);
    expect(await post(new URL(`/callbacks/shared/${secrets.URL_SECRET}`, url).href, callback)).toMatchObject(duplicate);
    expect(await post(new URL('/callbacks/shared/a-guess', url).href, callback)).toMatchObject({ status: 401 });
  });

  it('secure.ts accepts the gateway only by its address and its header together', async () => {
    const { url } = await serve('secure.ts', secrets);
    const gateway = new URL('/callbacks/gateway', url).href;
    const header = { 'X-Gateway-Token': secrets.GATEWAY_SECRET };

    expect(await post(gateway, transferSucceeded(), { headers: header })).toMatchObject(processed);
    expect(await post(gateway, transferSucceeded())).toMatchObject({ status: 401 });
    const elsewhere = { ...header, 'X-Forwarded-For': '203.0.113.7' };
    expect(await post(gateway, transferSucceeded(), { headers: elsewhere })).toMatchObject({ status: 401 });
  });
});

describe('graceful-shutdown.ts', () => {
  it('graceful-shutdown.ts exits with 0 on SIGTERM, after the running handler was acknowledged', async () => {
    const REDIS_URL = await redisUrl();
    const { url, said, send, exitCode } = await serve('graceful-shutdown.ts', { REDIS_URL });
    const callback = transferSucceeded({ externalId: 'payout-1' });

    const answer = post(url, callback);
    await said(/Booking payout-1/);
    send('SIGTERM');

    expect(await answer).toMatchObject(processed);
    expect(await exitCode).toBe(0);
    await said(/Booked payout-1/);
    await expect(post(url, callback)).rejects.toMatchObject({ code: 'ECONNREFUSED' });

    const next = await serve('graceful-shutdown.ts', { REDIS_URL });
    expect(await post(next.url, callback)).toMatchObject(duplicate);
  });

  it('graceful-shutdown.ts exits with 0 on SIGTERM although a client never finishes its request', async () => {
    const REDIS_URL = await redisUrl();
    const { url, said, send, exitCode } = await serve('graceful-shutdown.ts', { REDIS_URL });
    const stranger = connect(Number(new URL(url).port), '127.0.0.1');
    onTestFinished(() => {
      stranger.destroy();
    });
    const cut = new Promise((resolve) => stranger.once('close', resolve).once('error', resolve));
    await once(stranger, 'connect');
    stranger.write(head(url, { 'Content-Type': 'application/json', 'Content-Length': 10 }) + '{"a');
    const callback = transferSucceeded({ externalId: 'payout-1' });
    const answer = post(url, callback);
    await said(/Booking payout-1/);

    send('SIGTERM');

    expect(await answer).toMatchObject(processed);
    expect(await exitCode).toBe(0);
    await cut;
  });
});

describe('queue-hand-off.ts', () => {
  it('queue-hand-off.ts acknowledges a queued callback, works on it once, and exits', async () => {
    const REDIS_URL = await redisUrl();

    const { exitCode, output } = run('queue-hand-off.ts', { REDIS_URL });

    expect(await exitCode).toBe(0);
    expect(output()).toContain(`first delivery was answered 200: ${processed.body}`);
    expect(output()).toContain(`second delivery was answered 200: ${duplicate.body}`);
    expect(output().match(/Worked on payout-\w+: SUCCESS/g)).toHaveLength(1);
  });
});

describe('reconcile.ts', () => {
  it('reconcile.ts finds outcomes without a callback, handles each once, and does not treat an unknown transfer as failed', async () => {
    const { exitCode, output } = run('reconcile.ts');

    expect(await exitCode).toBe(0);
    expect(
      output()
        .match(/^(Paid|Refunded) .*$/gm)
        ?.sort(),
    ).toEqual(['Paid no-callback-1: 15000', 'Refunded failed-2: Beneficiary not found']);
    expect(output()).toContain('{"processed":2,"duplicate":0,"pending":0,"unknown":1,"failed":0}');
    expect(output()).toContain('{"processed":0,"duplicate":2,"pending":0,"unknown":1,"failed":0}');
    expect(output()).toMatch(/Look into unheard-of-3: TransferClientError: The service refused: 404/);
  });
});

describe('sandbox.ts', () => {
  it('sandbox.ts handles a transfer whose first two attempts are lost, and exits', async () => {
    const { exitCode, output } = run('sandbox.ts');

    expect(await exitCode).toBe(0);
    expect(output().match(/^Paid .*$/gm)).toEqual(['Paid 15000 XAF for lost-attempts-42']);
    expect(output()).toContain('Attempt 3: 200 processed');
  });
});

describe('demo.ts', () => {
  const rows = [
    '✓ A success            200            paid 15,000      processed',
    '✓ A failure            200            refunded 900     processed',
    '✓ A bank account       200            wired 250,000    processed',
    '✓ Handler fails once   500, 200       error, paid 900  handler_failed, processed',
    '✓ Handler wants later  503, 200       later, paid 900  retry_later, processed',
    '✓ Ten copies together  10 × 200       paid 900         processed, 9 × duplicate',
    '✓ Two attempts lost    2 × lost, 200  paid 900         processed',
    '✓ JSON cut short       400, 200       paid 900         invalid, processed',
    '✓ A contradiction      200, 4 × 422   refunded 900     processed, 4 × conflict',
    '✓ A forgery            4 × 401        nothing          4 × unauthorized',
    '✓ No callback          nothing        paid 900         processed',
    '✓ Reconciled first     200            paid 900         processed, duplicate',
  ];
  const rowsOf = (output: string): string[] => output.split('\n').filter((line) => /^[✓✗]/.test(line));

  it('demo.ts shows on the memory store that each delivery ends as designed', async () => {
    const { exitCode, output } = run('demo.ts');

    expect([await exitCode, rowsOf(output())]).toEqual([0, rows]);
    expect(output()).toContain('in memory');
  });

  it('demo.ts shows the same on Redis in repeated runs', async () => {
    const REDIS_URL = await redisUrl();
    for (const time of ['first', 'second']) {
      const { exitCode, output } = run('demo.ts', { REDIS_URL });

      expect([await exitCode, rowsOf(output())], time).toEqual([0, rows]);
      expect(output(), time).toContain('in Redis');
    }
  });

  it('the output of demo.ts fits into 80 columns and has no colours without a terminal', async () => {
    const { exitCode, output } = run('demo.ts');

    await exitCode;
    expect(
      output()
        .split('\n')
        .filter((line) => line.length > 80),
    ).toEqual([]);
    expect(output()).not.toContain('\u001B');
  });

  it('demo.ts exits with 1 when REDIS_URL leads to no Redis', async () => {
    const { exitCode, output } = run('demo.ts', { REDIS_URL: `redis://127.0.0.1:${await freePort()}` });

    expect(await exitCode).toBe(1);
    expect(output()).toContain('REDIS_URL leads to no Redis');
    expect(output()).toContain('ECONNREFUSED');
  });

  it.each([
    {
      fault: 'the store forgets everything',
      file: 'src/stores/memory.ts',
      plant: () => `export function memoryStore() {
        const lease = { renew: async () => true, settle: async () => ({ overlapped: false }), release: async () => {} };
        return { claim: async () => ({ state: 'claimed', lease }) };
      }`,
      // Of ten copies those are duplicates that arrive while the first is handled; on a busy machine one may be later.
      failures: [2, 3],
      row: 11,
      shown: '✗ Reconciled first     200            2 × paid 900     2 × processed',
    },
    {
      fault: 'a failed handler is acknowledged',
      file: 'src/http/answers.ts',
      plant: (text: string) => text.replace('status: 500', 'status: 200'),
      failures: [1],
      row: 3,
      shown: '✗ Handler fails once   200            error            handler_failed',
    },
    {
      fault: 'every sender is believed',
      file: 'src/http/verify.ts',
      plant: (text: string) => text.replace('return matches(lastPathSegment(request))', 'return true'),
      failures: [1],
      row: 9,
      shown: '✗ A forgery            200            refunded 15,000  processed',
    },
  ])('demo.ts exits with 1 and prints what was expected when $fault', async ({ file, plant, failures, row, shown }) => {
    const copy = await mkdtemp(join(tmpdir(), 'transfer-callbacks-demo-'));
    onTestFinished(() => rm(copy, { recursive: true }));
    for (const part of ['package.json', 'tsconfig.json', 'src', 'examples']) {
      await cp(join(root, part), join(copy, part), { recursive: true });
    }
    await symlink(join(root, 'node_modules'), join(copy, 'node_modules'));
    const before = await readFile(join(copy, file), 'utf8');
    const after = plant(before);
    expect(after).not.toBe(before);
    await writeFile(join(copy, file), after);

    const { exitCode, output } = run('demo.ts', {}, copy);

    expect(await exitCode).toBe(1);
    const expected = `    expected           ${rows[row]?.slice(23) ?? ''}`;
    expect(output()).toContain(`${shown}\n${expected}\n`);
    const failed = rowsOf(output()).filter((line) => line.startsWith('✗')).length;
    expect(failures).toContain(failed);
    expect(output()).toContain(`${failed} of 12 are not as designed.`);
  });
});
