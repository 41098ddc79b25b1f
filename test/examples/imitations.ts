// What each service of examples/services sends and responds: the payloads beside the definitions, with fresh ids,
// signed as its documentation tells, by code that shares nothing with the verifiers of the package.
import { createHash, createHmac, generateKeyPairSync, randomBytes, randomInt, sign as signBytes } from 'node:crypto';
import { urlencoded, type RequestHandler } from 'express';
import type { PayoutService } from 'transfer-callbacks';
import type { ServiceEvent } from 'transfer-callbacks/client';
import { readText } from '../docs/pages.js';
import { serve } from '../support/servers/serve.js';

export type Status = 'SUCCESS' | 'FAILED' | 'REVERSED';
export type ServiceCallback = ServiceEvent<
  { state: string; id: string; externalId: string },
  { paid: 'SUCCESS'; bounced: 'FAILED'; returned: 'REVERSED' }
>;
type Kind = 'success' | 'failed' | 'reversed' | 'pending' | 'ignored';

interface Payloads extends Partial<Record<Kind, object>> {
  readonly success: object;
  readonly failed: object;
  readonly query?: {
    readonly response: object;
    readonly statuses: Readonly<Record<string, string>>;
    /** The response for a transfer that was given back, if it is more than another status. */
    readonly REVERSED?: object;
    /** The response for a transfer that the service does not know, if it is no 404. */
    readonly unknown?: object;
  };
}

/** One request of a service. */
export interface Sent {
  readonly path: string;
  readonly method: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Ids {
  readonly id: string;
  readonly externalId: string;
}

interface Row {
  /** The ids in the payloads. A service with one id has no `externalId`. */
  readonly id: string | number;
  readonly externalId?: string;
  /** A text of `success` and what makes its state an unknown one. */
  readonly strange: readonly [text: string, other: string | null];
  readonly isForm?: true;
  readonly methods?: readonly ('post' | 'put')[];
  readonly before?: readonly RequestHandler[];
  /** Writes the body, where the signature depends on how it is written. */
  readonly write?: (payload: object) => string;
  /** Returns the headers. A stranger signs with a key of his own. Without it the sender has a token in the path. */
  readonly sign?: (body: string, isStranger: boolean) => Record<string, string>;
  /** A change of a body that its signature does not cover any more. */
  readonly flip?: readonly [RegExp, string];
  /** Where the service responds about a transfer, by each id that it takes. */
  readonly paths?: (ids: Ids) => Partial<Ids>;
}

const key = 'the-secret-of-the-service-0123456789';
const strangersKey = 'the-secret-of-a-stranger-0123456789';
const token = 'the-token-in-the-path-0123456789';
type Pair = ReturnType<typeof makeEc>;
const makeEc = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });
const makeRsa = () => generateKeyPairSync('rsa', { modulusLength: 2048 });
/** The keys of the services, and those of a stranger. */
const [ec, rsa] = [[makeEc(), makeEc()] as const, [makeRsa(), makeRsa()] as const];
const toPem = ({ publicKey }: Pair): string => publicKey.export({ type: 'spki', format: 'pem' }).toString();
const privateKey = ([own, foreign]: readonly [Pair, Pair], isStranger: boolean) =>
  (isStranger ? foreign : own).privateKey;

const hmac = (header: string, algorithm: string, encoding: 'hex' | 'base64' = 'hex') => ({
  flip: [/("amount": ?"?)\d/, '$19'] as const,
  sign: (body: string, isStranger: boolean) => ({
    [header]: createHmac(algorithm, isStranger ? strangersKey : key)
      .update(body)
      .digest(encoding),
  }),
});

const merchantUrl = 'https://merchant.example/callbacks/pawapay';

/** Signs as pawaPay documents it: RFC 9421, ECDSA P-256 in DER. */
function signMessage(body: string, isStranger: boolean): Record<string, string> {
  const digest = `sha-512=:${createHash('sha512').update(body).digest('base64')}:`;
  const now = Math.floor(Date.now() / 1_000);
  const values = {
    ...{ '@method': 'POST', '@authority': 'merchant.example', '@path': '/callbacks/pawapay' },
    ...{ 'signature-date': new Date().toISOString(), 'content-digest': digest },
    'content-type': 'application/json; charset=UTF-8',
  };
  const names = Object.keys(values).map((name) => `"${name}"`);
  const params = `(${names.join(' ')});alg="ecdsa-p256-sha256";keyid="HTTP_EC_P256_KEY:1";created=${now};expires=${now + 60}`;
  const lines = Object.entries(values).map(([name, value]) => `"${name}": ${value}`);
  const base = Buffer.from([...lines, `"@signature-params": ${params}`].join('\n'));
  const signature = signBytes('sha256', base, privateKey(ec, isStranger)).toString('base64');
  return {
    ...Object.fromEntries(Object.entries(values).filter(([name]) => !name.startsWith('@'))),
    ...{ 'signature-input': `sig-pp=${params}`, signature: `sig-pp=:${signature}:` },
  };
}

const table = {
  paystack: {
    ...{ id: 860703114, externalId: 'payout-a-8841-00017', strange: ['transfer.success', 'transfer.strange'] },
    ...hmac('x-paystack-signature', 'sha512'),
    paths: ({ id, externalId }) => ({ id: `/transfer/${id}`, externalId: `/transfer/verify/${externalId}` }),
  },
  flutterwave3: {
    ...{ id: 33286, externalId: 'payout-8841-17', strange: ['SUCCESSFUL', 'STRANGE'] },
    sign: (_body, isStranger) => ({ 'verif-hash': isStranger ? strangersKey : key }),
    paths: ({ id }) => ({ id: `/v3/transfers/${id}` }),
  },
  flutterwave4: {
    ...{ id: 'trf_yuK89vb', externalId: 'payout-8841-17', strange: ['transfer.disburse', 'transfer.strange'] },
    ...hmac('flutterwave-signature', 'sha256', 'base64'),
    paths: ({ id }) => ({ id: `/transfers/${id}` }),
  },
  pawapay: {
    ...{ id: 'f4401bd2-1568-4140-bf2d-eb77d2b2b639', strange: ['COMPLETED', 'STRANGE'] },
    ...{ sign: signMessage, flip: [/("amount":")\d/, '$19'] },
    paths: ({ id }) => ({ id: `/v2/payouts/${id}` }),
  },
  mtn: {
    ...{ id: 'c72025f5-5cd1-4630-99e4-8ba4722fad56', strange: ['SUCCESSFUL', 'STRANGE'], methods: ['put', 'post'] },
    before: [
      (request, _response, next) => {
        request.method = 'POST';
        next();
      },
    ],
    paths: ({ id }) => ({ id: `/disbursement/v1_0/transfer/${id}` }),
  },
  korapay: {
    ...{ id: 'payout-8841-17', strange: ['success', 'strange'] },
    write: (payload) => {
      const { data, event } = payload as { data: object; event: string };
      return `{ "data": ${JSON.stringify(data)}, "event": ${JSON.stringify(event)} }`;
    },
    // The signature is of the member `data` alone.
    sign: (body, isStranger) =>
      hmac('x-korapay-signature', 'sha256').sign(
        JSON.stringify((JSON.parse(body) as { data: object }).data),
        isStranger,
      ),
    flip: [/("amount":)\d/, '$19'],
    paths: ({ id }) => ({ id: `/merchant/api/v1/transactions/${id}` }),
  },
  monnify: {
    ...{ id: 'payout-8841-17', strange: ['SUCCESS', 'STRANGE'] },
    ...hmac('monnify-signature', 'sha512'),
    paths: ({ id }) => ({ id: `/api/v2/disbursements/single/summary?reference=${id}` }),
  },
  mpesa: {
    ...{ id: 'AG_20261120_000042b7667c678fcc42', externalId: 'payout-8841-17', strange: ['0', null] },
  },
  cinetpay: {
    ...{ id: 'EA261120.112233.A445566', externalId: 'payout-8841-17', strange: ['VAL', 'STRANGE'], isForm: true },
    before: [urlencoded({ extended: false })],
    paths: ({ id }) => ({ id: `/v1/transfer/check/money?token=${key}&transaction_id=${id}` }),
  },
  wise: {
    ...{ id: 11100042, strange: ['outgoing_payment_sent', 'strange'], flip: [/outgoing_payment_sent/, 'cancelled'] },
    sign: (body, isStranger) => ({
      'x-signature-sha256': signBytes('sha256', Buffer.from(body), privateKey(rsa, isStranger)).toString('base64'),
    }),
    paths: ({ id }) => ({ id: `/v1/transfers/${id}` }),
  },
  razorpayx: {
    ...{ id: 'pout_1Aa00000000001', externalId: 'payout-8841-17', strange: ['payout.processed', 'payout.strange'] },
    ...hmac('x-razorpay-signature', 'sha256'),
    paths: ({ id }) => ({ id: `/v1/payouts/${id}` }),
  },
} as const satisfies Record<string, Row>;

function writeForm(payload: object): string {
  const fields = Object.entries(payload as Record<string, string | undefined>).filter(
    ([, value]) => value !== undefined,
  );
  return new URLSearchParams(fields as [string, string][]).toString();
}

/** What the services respond to queries, by path. Each of them is at a path of its own. */
const responses = new Map<string, { status: number; body: object }>();
export const standIn = await serve(({ url = '' }, response) => {
  const { status, body } = responses.get(url) ?? { status: 404, body: { message: 'Not found' } };
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
});

const keyNames = ['SECRET_KEY', 'WEBHOOK_SECRET', 'CLIENT_SECRET', 'TOKEN', 'KEY', 'SUBSCRIPTION_KEY'];

/** Imports a definition with the stand-in and the keys of this file in its environment. */
async function load(name: keyof typeof table): Promise<PayoutService<ServiceCallback>> {
  const prefix = name.toUpperCase();
  Object.assign(process.env, {
    [`${prefix}_URL`]: `${standIn.url}/${name}`,
    ...Object.fromEntries(keyNames.map((suffix) => [`${prefix}_${suffix}`, key])),
    ...{ [`${prefix}_CALLBACK_SECRET`]: token, PAWAPAY_CALLBACK_URL: merchantUrl },
    ...{ FLUTTERWAVE_SECRET_HASH: key, FLUTTERWAVE_SECRET_KEY: key, FLUTTERWAVE_TOKEN: key },
    ...{ PAWAPAY_PUBLIC_KEY: toPem(ec[0]), WISE_PUBLIC_KEY: toPem(rsa[0]) },
  });
  const module = (await import(`../../examples/services/${name}.ts`)) as Record<string, PayoutService<ServiceCallback>>;
  const service = module[name];
  if (service === undefined) throw new Error(`${name}.ts does not export ${name}.`);
  return service;
}

/** Returns a copy with other values in place of those that `replace` knows. */
function replaceLeaves(value: unknown, replace: (leaf: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map((each) => replaceLeaves(each, replace));
  if (typeof value !== 'object' || value === null) return replace(value);
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, replaceLeaves(each, replace)]));
}

/** Makes a transfer at an imitated service. */
function makeTransfer(name: string, row: Row, payloads: Payloads) {
  const makeId = (id: string): string => `${id}-${randomBytes(8).toString('hex')}`;
  const id = typeof row.id === 'number' ? String(randomInt(2 ** 40)) : makeId(row.id);
  const ids: Ids = { id, externalId: row.externalId === undefined ? id : makeId(row.externalId) };

  const renew = (payload: object | undefined): object =>
    replaceLeaves(payload, (leaf) => {
      if (leaf === row.externalId) return ids.externalId;
      return leaf === row.id ? (typeof row.id === 'number' ? Number(id) : id) : leaf;
    }) as object;

  function sendPayload(payload: object, isStranger = false): Sent {
    const { isForm, write = JSON.stringify, sign, methods: [method = 'post'] = [] } = row;
    const body = isForm ? writeForm(payload) : write(payload);
    const type = isForm ? 'application/x-www-form-urlencoded' : 'application/json';
    return {
      path: `/callbacks/${name}${sign !== undefined ? '' : `/${isStranger ? strangersKey : token}`}`,
      method: method.toUpperCase(),
      body,
      headers: { 'content-type': type, ...sign?.(body, isStranger) },
    };
  }

  return {
    ids,
    sendPayload,
    /** Returns what the service sends, with its signature. `replace` changes the payload before. */
    send: (kind: Kind, { replace = (leaf: unknown) => leaf, isStranger = false } = {}): Sent =>
      sendPayload(replaceLeaves(renew(payloads[kind]), replace) as object, isStranger),
    /** From now on the service responds so to a query. */
    become(status: Status | 'PENDING' | 'unknown'): void {
      const { query } = payloads;
      if (query === undefined) return;
      const fill = (leaf: unknown) => (leaf === '{status}' ? query.statuses[status] : leaf);
      const given = status === 'unknown' ? query.unknown : status === 'REVERSED' ? query.REVERSED : undefined;
      const body = given ?? (status === 'unknown' ? undefined : (replaceLeaves(query.response, fill) as object));
      for (const path of Object.values(row.paths?.(ids) ?? {})) {
        if (body !== undefined) responses.set(`/${name}${path}`, { status: 200, body: renew(body) });
      }
    },
  };
}

export type Transfer = ReturnType<typeof makeTransfer>;

/** What a test asks about a service. */
export interface Imitation {
  readonly name: string;
  readonly service: PayoutService<ServiceCallback>;
  readonly row: Row;
  readonly sends: (kind: Kind) => boolean;
  /** Whether it takes successes back. */
  readonly reverses: boolean;
  /** By which ids it can be asked. */
  readonly asked: readonly (keyof Ids)[];
  readonly transfer: () => Transfer;
}

/** Every service, with what it sends and responds. */
export const imitations: readonly Imitation[] = await Promise.all(
  (Object.keys(table) as (keyof typeof table)[]).map(async (name) => {
    const row: Row = table[name];
    const payloads = JSON.parse(readText(`examples/services/payloads/${name}.json`)) as Payloads;
    const service = await load(name);
    return {
      ...{ name, service, row },
      sends: (kind: Kind) => payloads[kind] !== undefined,
      reverses: payloads.reversed !== undefined,
      asked: Object.keys(row.paths?.({ id: '', externalId: '' }) ?? {}) as (keyof Ids)[],
      transfer: () => makeTransfer(name, row, payloads),
    };
  }),
);
