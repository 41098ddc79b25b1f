import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { transferToken } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { describe, expect, it, test, vi } from 'vitest';
import { post } from '../support/helpers/post.js';
import { freePort } from '../support/servers/port.js';
import { root } from '../docs/pages.js';
import { duplicate, processed, run, serve } from './support.js';

test('every example is run by a test', async () => {
  const tests = (await readdir(join(root, 'test/examples'))).map((file) => `test/examples/${file}`);
  const texts = await Promise.all(tests.map((file) => readFile(join(root, file), 'utf8')));
  // `payouts.ts` imitates the user's own code and is run by the others.
  const examples = (await readdir(join(root, 'examples'))).filter(
    (file) => /(?<!\.test)\.ts$/.test(file) && file !== 'payouts.ts',
  );
  // A test starts an example as a program, or imports it.
  const isIn = (text: string, file: string): boolean =>
    text.includes(`${file}'`) || text.includes(`examples/${file.replace('.ts', '.js')}'`);
  expect(examples.filter((file) => !texts.some((text) => isIn(text, file)))).toEqual([]);
});

describe('metrics.ts', () => {
  it('counts a callback in the metrics that Prometheus reads', async () => {
    const { url } = await serve('metrics.ts');
    const callbackUrl = url.replace(/,$/, '');
    expect(await post(callbackUrl, transferSucceeded())).toMatchObject(processed);
    const metrics = await fetch(new URL('/metrics', callbackUrl));
    expect(metrics.headers.get('content-type')).toContain('text/plain; version=0.0.4');
    expect(await metrics.text()).toContain(
      'transfer_callbacks_deliveries_total{outcome="processed",event="transfer",source="http"} 1\n',
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

  it('accepts the URL of a transfer for this transfer only', async () => {
    const { url } = await serve('secure.ts');

    expect(await post(url, transferSucceeded({ externalId: 'payout-1' }))).toMatchObject(processed);
    expect(await post(url, transferSucceeded({ externalId: 'payout-2' }))).toMatchObject({ status: 401 });
    expect(await post(new URL('a-guess', url).href, transferSucceeded({ externalId: 'payout-1' }))).toMatchObject({
      status: 401,
    });
  });

  it('accepts other ways in beside it, and nothing else there', async () => {
    const { url } = await serve('secure.ts', secrets);
    const callback = transferSucceeded({ externalId: 'payout-1' });
    const madeWith = (secret: string): string =>
      transferToken(secret).urlFor(new URL('/callbacks/transfers', url).href, callback.data.externalId);
    expect(await post(madeWith(secrets.TRANSFER_SECRET_PREVIOUS), callback)).toMatchObject(processed);
    expect(await post(madeWith(secrets.TRANSFER_SECRET), callback)).toMatchObject(duplicate);
    expect(await post(madeWith('the-secret-before-those'), callback)).toMatchObject({ status: 401 });

    // The shared URL has the same record of handled callbacks.
    expect(await post(new URL(`/callbacks/shared/${secrets.URL_SECRET}`, url).href, callback)).toMatchObject(duplicate);
    expect(await post(new URL('/callbacks/shared/a-guess', url).href, callback)).toMatchObject({ status: 401 });

    // The gateway needs its address and its header together.
    const gateway = new URL('/callbacks/gateway', url).href;
    const header = { 'X-Gateway-Token': secrets.GATEWAY_SECRET };
    expect(await post(gateway, transferSucceeded(), { headers: header })).toMatchObject(processed);
    expect(await post(gateway, transferSucceeded())).toMatchObject({ status: 401 });
    const elsewhere = { ...header, 'X-Forwarded-For': '203.0.113.7' };
    expect(await post(gateway, transferSucceeded(), { headers: elsewhere })).toMatchObject({ status: 401 });
  });
});

describe('hosts/node-http.ts', () => {
  it('receives callbacks at a URL with a query, and no other path', async () => {
    const CALLBACK_TOKEN = 'the-token-of-this-test';
    const PORT = String(await freePort());
    run('hosts/node-http.ts', { PORT, CALLBACK_TOKEN });
    const url = `http://127.0.0.1:${PORT}/callbacks/transfers`;
    const send = (to: string) => post(to, transferSucceeded(), { headers: { 'X-Callback-Token': CALLBACK_TOKEN } });

    await vi.waitFor(() => send(url));
    expect(await send(`${url}?a=b`)).toMatchObject(processed);
    expect(await send(`${url}/more`)).toMatchObject({ status: 404 });
  });
});

describe('reconcile.ts', () => {
  it('finds outcomes without a callback, handles each once, and does not treat an unknown transfer as failed', async () => {
    const { exitCode, output } = run('reconcile.ts');

    expect(await exitCode).toBe(0);
    expect(
      output()
        .match(/^(Paid|Refunded) .*$/gm)
        ?.sort(),
    ).toEqual(['Paid no-callback-1: 15000', 'Refunded failed-2: Beneficiary not found']);
    expect(output()).toContain('{"processed":2,"duplicate":0,"pending":0,"unknown":1,"failed":0}');
    expect(output()).toContain('{"processed":0,"duplicate":2,"pending":0,"unknown":1,"failed":0}');
    expect(output()).toMatch(/Look into unheard-of-3: TransferClientError: The service at \S+ refused: 404/);
  });
});

describe('sandbox.ts', () => {
  it('handles a transfer whose first two attempts are lost, and exits', async () => {
    const { exitCode, output } = run('sandbox.ts');

    expect(await exitCode).toBe(0);
    expect(output().match(/^Paid .*$/gm)).toEqual(['Paid 15000 XAF for lost-attempts-42']);
    expect(output()).toContain('Attempt 3: 200 processed');
  });
});

interface Printed {
  readonly name: string | undefined;
  readonly id: string | undefined;
  readonly traceId: string | undefined;
  readonly parentId: string | undefined;
  readonly text: string;
}

/** Reads what the console exporter of OpenTelemetry has printed. */
function readSpans(output: string): Printed[] {
  const find = (text: string, pattern: RegExp): string | undefined => pattern.exec(text)?.[1];
  return [...output.matchAll(/^\{\n.*?^\}$/gms)].map(([text]) => ({
    name: find(text, /^ {2}name: '(.*)'/m),
    id: find(text, /^ {2}id: '(.*)'/m),
    traceId: find(text, /^ {2}traceId: '(.*)'/m),
    parentId: find(text, /parentSpanContext: \{.*?spanId: '(\w+)'/s),
    text,
  }));
}

test.each([
  ['transferSucceeded', transferSucceeded(), 'mark payout paid'],
  ['transferFailed', transferFailed(), 'refund payout'],
])(
  'tracing.ts: %s is one trace from the HTTP request to the span of the handler',
  async (_name, callback, handlerSpan) => {
    const { url, output } = await serve('tracing.ts');
    expect(await post(url, callback)).toMatchObject({ status: 200 });
    const spans = await vi.waitUntil(() => {
      const read = readSpans(output());
      return read.some(({ name }) => name === 'HTTP POST') && read;
    });
    const named = (name: string): Printed => spans.find((span) => span.name === name) ?? expect.fail(`no span ${name}`);

    const chain = ['HTTP POST', 'transfer-callbacks:receive', 'transfer-callbacks:handle', handlerSpan].map(named);
    for (const [index, span] of chain.entries()) expect(span.parentId).toBe(chain[index - 1]?.id);
    for (const call of ['claim', 'settle']) {
      expect(named(`transfer-callbacks:store ${call}`).parentId).toBe(named('transfer-callbacks:receive').id);
    }
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
    const delivery = /'transfer_callbacks.delivery': '(.*)'/.exec(named('transfer-callbacks:receive').text)?.[1];
    expect(delivery).toBeDefined();
    for (const span of chain.slice(1, 3))
      expect(span.text).toContain(`'transfer_callbacks.delivery': '${delivery ?? ''}'`);
    expect(named('transfer-callbacks:receive').text).toContain("'transfer_callbacks.outcome': 'processed'");
    expect(output()).not.toContain(callback.data.walletNumber);
  },
);
