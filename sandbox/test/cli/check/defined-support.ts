import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import express, { urlencoded } from 'express';
import { memoryStore, transferCallbackReceiver, transferCallbackRouter } from 'transfer-callbacks';
import type { PayoutService, ReceiverOptions } from 'transfer-callbacks';
import type { ServiceEvent } from 'transfer-callbacks/client';
import ts from 'typescript';
import { root } from '../../../../test/cli/support.js';
import { keyPairs, toPem, toPrivatePem } from '../../../../test/http/verifiers/keys.js';
import { checkIn, makeBooks, type Book } from './support.js';
import { serveForTest } from '../../../../test/support/servers/serve-for-test.js';

export const key = 'the-secret-of-the-service-0123456789';

const [[ec], [rsa]] = [keyPairs.p256, keyPairs.rsa];

/** The private keys in PEM, by the service that signs with them. */
export const privateKeys: Readonly<Record<string, string>> = { pawapay: toPrivatePem(ec), wise: toPrivatePem(rsa) };

/** The address of the merchant, as pawaPay knows it. */
export const publicUrl = 'https://merchant.example/callbacks';

/** What the definitions read of the environment. */
export const secrets = {
  ...{ PAWAPAY_PUBLIC_KEY: toPem(ec), WISE_PUBLIC_KEY: toPem(rsa), PAWAPAY_CALLBACK_URL: publicUrl },
  ...{ PAYSTACK_SECRET_KEY: key, KORAPAY_SECRET_KEY: key, MTN_CALLBACK_SECRET: key, CINETPAY_CALLBACK_SECRET: key },
  ...{ FLUTTERWAVE_SECRET_HASH: key, FLUTTERWAVE_SECRET_KEY: key, RAZORPAYX_WEBHOOK_SECRET: key },
  ...{ MONNIFY_CLIENT_SECRET: key, MONNIFY_SECRET_KEY: key, MPESA_CALLBACK_SECRET: key },
};

type Callback = ServiceEvent<
  { state: string; id: string; externalId: string },
  { paid: 'SUCCESS'; bounced: 'FAILED'; returned: 'REVERSED' }
>;
type Kind = 'success' | 'failed' | 'reversed';

/** Writes what a user of `check` has: a definition in JavaScript, and the samples of the documentation. */
export async function writeService(name: string, folder: string): Promise<string[]> {
  const read = (path: string): string => readFileSync(join(root, 'examples/services', path), 'utf8');
  const text = read(`${name}.ts`).replaceAll(/'transfer-callbacks(?:\/client)?'/g, "'transfer-sandbox'");
  const { outputText } = ts.transpileModule(text, {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 },
  });
  const definition = join(folder, `${name}.mjs`);
  await writeFile(definition, outputText);
  const payloads = JSON.parse(read(`payloads/${name}.json`)) as Partial<Record<Kind, Record<string, string>>>;
  const args = ['--service', definition];
  for (const kind of ['success', 'failed', 'reversed'] as const) {
    const payload = payloads[kind];
    if (payload === undefined) continue;
    const sample = join(folder, `${name}-${kind}`);
    const isForm = name === 'cinetpay';
    await writeFile(sample, isForm ? new URLSearchParams(payload).toString() : JSON.stringify(payload));
    args.push(`--${kind}`, sample);
  }
  return args;
}

/** Serves the router with a service, at a path with a token. */
export async function withService(name: string, book: Book): Promise<string> {
  Object.assign(process.env, secrets);
  const module = (await import(`../../../../examples/services/${name}.ts`)) as Record<string, PayoutService<Callback>>;
  const service = module[name];
  const isReversible = service?.meanings.has('REVERSED') === true;
  const receiver = transferCallbackReceiver({
    ...{ service, store: memoryStore(), logger: false, onSuccess: book, onFailed: book },
    ...(isReversible && { onReversed: book, retentionMs: 60 * 86_400_000 }),
  } as ReceiverOptions<Callback, unknown>);
  const url = await serveForTest(
    express().post(
      ['/callbacks', '/callbacks/:token'],
      ...(name === 'cinetpay' ? [urlencoded({ extended: false })] : []),
      transferCallbackRouter({ receiver }),
    ),
  );
  return `${url}/callbacks`;
}

/** Checks an endpoint in the name of a service. */
export async function checkService(name: string, url: string, ...args: string[]) {
  const { folder } = await makeBooks();
  const service = await writeService(name, folder);
  const privateKey = privateKeys[name];
  const env = { ...secrets, ...(privateKey !== undefined && { CALLBACK_SECRET: privateKey }) };
  return checkIn({ env, cwd: folder }, url, ...service, ...args);
}

/** Checks an endpoint in the name of a service of the package. `env` has CALLBACK_SECRET, and no variable of a definition. */
export function checkNamed(name: string, url: string, args: readonly string[], env: Record<string, string>) {
  // In this process `withService` sets what a definition reads. The command must not find it there.
  const unset = Object.fromEntries(Object.keys(secrets).map((each) => [each, '']));
  return checkIn({ env: { ...unset, ...env } }, url, '--service', name, ...args);
}
