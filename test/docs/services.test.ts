// The example of docs/services.md, run as its reader would run it.
import { randomBytes } from 'node:crypto';
import { compileFunction } from 'node:vm';
import express, { type Express } from 'express';
import ts from 'typescript';
import { expect, onTestFinished, test } from 'vitest';
import * as root from 'transfer-callbacks';
import * as client from 'transfer-callbacks/client';
import { post } from '../support/helpers/post.js';
import { serve } from '../support/servers/serve.js';
import { findBlocks, findPage, findTable, isThere, listFiles, readText } from './pages.js';

const page = findPage('docs/services.md');
const secret = 'the-secret-of-the-service-0123456789';

interface Example {
  readonly receiver: root.TransferCallbackReceiver;
  readonly app: Express;
}

/** Runs the first block of the page, with what it takes of the environment, and notes what it books. */
function runExample(environment: Readonly<Record<string, string>>): Example & { booked: string[] } {
  const code = findBlocks(page, 'ts')[0]?.code ?? expect.fail('There is no example.');
  const { outputText } = ts.transpileModule(code, {
    compilerOptions: { module: ts.ModuleKind.CommonJS, esModuleInterop: true },
  });
  const modules: Record<string, unknown> = { 'transfer-callbacks': root, 'transfer-callbacks/client': client, express };
  const run = compileFunction(outputText, ['require', 'exports', 'process', 'book']) as (...values: unknown[]) => void;
  const exported = {};
  const booked: string[] = [];
  const book = (payout: string, entry: string) => booked.push(`${payout} ${entry}`);
  run((name: string) => modules[name], exported, { env: environment }, book);
  return { ...(exported as Example), booked };
}

test('the example of docs/services.md handles what its service sends, and asks it', async () => {
  const payout = { id: 7, reference: 'payout-1', cents: 1999, currency: 'XAF', reason: null };
  const known: Record<string, object> = { '/payouts/8': { state: 'returned', payout: { ...payout, id: 8 } } };
  const service = await serve(({ url = '' }, response) => {
    response.writeHead(known[url] === undefined ? 404 : 200).end(JSON.stringify(known[url] ?? {}));
  });
  onTestFinished(service.close);
  const { app, receiver, booked } = runExample({ SERVICE_URL: service.url, SIGNATURE_SECRET: secret });
  const { url, close } = await serve(app);
  onTestFinished(close);
  const verify = root.hmacSignature({ header: 'x-signature', secrets: secret });
  const send = async (type: string, changes: object = {}, headers?: Record<string, string>): Promise<string> => {
    const body = JSON.stringify({ type, payout: { ...payout, ...changes } });
    const response = await post(`${url}/callbacks/payouts`, body, { headers: headers ?? verify.sign(body) });
    return `${response.status} ${(JSON.parse(response.body) as { outcome?: string }).outcome ?? ''}`.trim();
  };

  expect(await send('payout.pending')).toBe('200 ignored');
  expect(await send('payout.paid')).toBe('200 processed');
  expect(await send('payout.paid')).toBe('200 duplicate');
  expect(await send('payout.returned')).toBe('200 processed');
  expect(await send('payout.bounced', { id: 9, reason: 'Wallet closed' })).toBe('200 processed');
  expect(await send('charge.paid')).toBe('200 ignored');
  expect(await send('payout.strange')).toBe('400');
  expect(await send('payout.paid', { id: 10 }, { 'x-signature': randomBytes(32).toString('hex') })).toBe('401');
  expect(await client.reconcileTransfer({ receiver, id: '8' })).toMatchObject({ result: 'processed' });
  expect(await client.reconcileTransfer({ receiver, id: '11' })).toMatchObject({ result: 'unknown' });
  expect(booked).toEqual([
    ...['payout-1 paid 1999', 'payout-1 refunded', 'payout-1 refunded: Wallet closed', 'payout-1 refunded'],
  ]);
});

test('docs/services.md has a row and samples for each definition, and a source for each service', () => {
  const definitions = listFiles('examples/services', '.ts').map((path) => path.slice('examples/services/'.length, -3));
  const linked = findTable(page, 'service, definition').map(([cell = '']) => /services\/(\w+)\.ts/.exec(cell)?.[1]);
  expect(linked.sort()).toEqual(definitions.sort());
  expect(definitions.filter((name) => !isThere(`examples/services/payloads/${name}.json`))).toEqual([]);
});

test('the samples have their sources and the day of docs/services.md, as the comments of the definitions', () => {
  const [, day] = /were read in public documentation on ([\d-]+)\. No service was seen live/.exec(page.text) ?? [];
  const definitions = listFiles('examples/services', '.ts');
  expect(definitions.length).toBeGreaterThan(10);
  for (const path of definitions) {
    const samples = path.replace(/(\w+)\.ts$/, 'payloads/$1.json');
    const { source, readOn } = JSON.parse(readText(samples)) as Samples;
    expect(readOn, samples).toBe(day);
    const comment = readText(path).replaceAll(/\s*\n\/\/ /g, ' ');
    expect(comment, path).toContain(`Read in public documentation on ${String(day)}, not seen live`);
    const [place = ''] = /^[\w.]+/.exec(source) ?? [];
    expect(comment, path).toContain(place);
  }
});

interface Samples {
  readonly source: string;
  readonly readOn: string;
}
