import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { expect, test, vi } from 'vitest';
import { post } from '../support/helpers/post.js';
import { serve } from './support.js';

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
])('%s is one trace from the HTTP request to the span of the handler', async (_name, callback, handlerSpan) => {
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
});
