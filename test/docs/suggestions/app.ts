// An app with one of each: what people have where an error of an option tells them to write other code.
import { createServer } from 'node:http';
import { Redis } from 'ioredis';
import { createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import * as root from 'transfer-callbacks';
import * as client from 'transfer-callbacks/client';
import { transferSandbox } from 'transfer-sandbox';
import { keyPairs, toPem, toPrivatePem } from '../../http/verifiers/keys.js';

export const redis = new Redis({ lazyConnect: true });
export const pool = new Pool({ max: 1 });
export const mysql = createPool('mysql://127.0.0.1:1/none');
export const sandbox = await transferSandbox({ console: false });

/** Closes everything that this file has opened. */
export async function closeApp(): Promise<void> {
  redis.disconnect();
  await pool.end();
  await mysql.end();
  await sandbox.close();
}

export const keys = { baseUrl: 'https://service.example', apiKey: 'key', apiSecret: 'secret' };
export const fetch = () => Promise.reject(new Error('There is no network.'));
export const service = client.transferService({ ...keys, fetch });
export const secret = 'a-secret-of-a-test';
export const unaskedOptions = {
  ...{ store: root.memoryStore(), logger: false as const },
  ...{ onSuccess: () => undefined, onFailed: () => undefined },
};
export const receiverOptions = { ...unaskedOptions, service };
export const receiver = root.transferCallbackReceiver(receiverOptions);
export const unasked = root.transferCallbackReceiver(unaskedOptions);
export const read = ({ state, id }: { state: string; id: string }) => ({ state, id, externalId: id });
export const states = { paid: 'SUCCESS', bounced: 'FAILED', returned: 'REVERSED', charged: 'OTHER' } as const;
/** A service that reverses payouts, sends other events and can be asked. */
export const reversingOptions = {
  ...{ ...receiverOptions, service: client.defineService({ read, states, query: () => undefined }) },
  ...{ onReversed: () => undefined, onOther: () => undefined, retentionMs: 86_400_000 },
};
export const reversing = root.transferCallbackReceiver(reversingOptions);
export const knex = { raw: () => undefined, transaction: () => undefined };
export const id = 'payout-1';
export const url = 'https://merchant.example';
export const publicKey = toPem(keyPairs.ed25519[0]);
export const privateKey = toPrivatePem(keyPairs.ed25519[0]);
export const hmac = { header: 'x-signature', secrets: secret };
export const signHmac = root.hmacSignature({ ...hmac, signed: '{x-id}.{body}' });
export const key = root.publicKeySignature({ header: 'x-signature', publicKeys: publicKey });
export const message = root.messageSignature({ url, publicKeys: publicKey });
export const aborted = AbortSignal.abort();
/** A pool without a database. */
export const noPool = { connect: () => Promise.reject(new Error('There is no database.')) };
export const transactional = { transactional: true, claim: () => Promise.reject(new Error('There is no database.')) };
export const server = createServer((_request, response) => {
  response.end();
});
