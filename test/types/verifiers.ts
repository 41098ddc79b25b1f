// Verifiers, and what mounts where.
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { createSecureServer } from 'node:http2';
import express, { Router, type Request } from 'express';
import { expectTypeOf } from 'vitest';
import {
  basicAuth,
  headerToken,
  hmacSignature,
  ipAllowList,
  memoryStore,
  messageSignature,
  publicKeySignature,
  transferCallbackHandler,
  transferCallbackListener,
  transferCallbackRouter,
  transferToken,
  urlToken,
  type TransferCallback,
  type TransferCallbackReceiver,
  type TransferFailed,
  type Verifier,
} from 'transfer-callbacks';
import type { WebRequest } from '../../src/http/handler.js';

const options = { store: memoryStore(), onSuccess: () => undefined, onFailed: () => undefined };
const secret = 'at least 16 characters';

// The router is Express's own, and mounts like any other.
const router = transferCallbackRouter(options);
expectTypeOf(router).toExtend<Router>();
expectTypeOf(router.receiver).toEqualTypeOf<TransferCallbackReceiver>();
expectTypeOf(transferCallbackListener(options).receiver).toEqualTypeOf<TransferCallbackReceiver>();
expectTypeOf(transferCallbackHandler(options).receiver).toEqualTypeOf<TransferCallbackReceiver>();
const app = express();
app.use(router);
app.use('/callbacks/transfers', express.json(), router);
Router().use('/callbacks', router);
app.post('/callbacks/transfers/:token', express.json(), router);
app.all('/callbacks/transfers', [router]);
app.route('/callbacks/transfers/:token').post(router);
Router().post('/callbacks', router);

// The listener fits Node's own servers, HTTP/2 too, and mounts like any handler.
const listener = transferCallbackListener(options);
expectTypeOf(listener).toExtend<RequestListener>();
createServer(listener);
createSecureServer({ allowHTTP1: true }, listener);
app.post('/callbacks', listener);

// The handler fits hosts of the Fetch API, those that pass a second argument too.
const handler = transferCallbackHandler(options);
// As Next.js checks a route, as Deno's and Bun's servers call their handler, and as a Worker calls `fetch`.
interface NextRequest extends globalThis.Request {
  nextUrl: URL;
}
type NextRoute = (request: NextRequest, context: { params: Promise<{ tenant: string }> }) => Promise<Response>;
expectTypeOf(handler).toExtend<NextRoute>();
type DenoHandler = (
  request: globalThis.Request,
  info: { remoteAddr: { transport: 'tcp'; hostname: string; port: number }; completed: Promise<void> },
) => Response | Promise<Response>;
expectTypeOf(handler).toExtend<DenoHandler>();
type BunHandler = (
  request: globalThis.Request,
  server: { requestIP(request: globalThis.Request): object },
) => Promise<Response>;
expectTypeOf(handler).toExtend<BunHandler>();
declare const executionContext: { waitUntil(work: Promise<unknown>): void; passThroughOnException(): void };
declare function after<T>(task: Promise<T> | (() => T | Promise<T>)): void; // of Next.js
const webRequest = Object.assign(new globalThis.Request('https://merchant.example/'), { ip: '203.0.113.7' });
export const responses = () => [
  handler(webRequest),
  handler(webRequest, executionContext),
  handler(webRequest, { waitUntil: after }),
];
// @ts-expect-error -- an object.
export const withoutObject = () => handler(webRequest, after.name);

// The ready-made ones fit all three, alone and in a list, beside one of one's own.
const perTransfer = transferToken([secret, secret]);
expectTypeOf(perTransfer.urlFor('https://merchant.example/', 'payout-1')).toEqualTypeOf<string>();
const own: Verifier = (request) => request.headers['x-gateway'] === 'payouts';
const ready = [
  perTransfer,
  urlToken(secret),
  headerToken('x-token', secret),
  basicAuth({ username: 'service', password: secret }),
  ipAllowList(['203.0.113.0/24']),
  hmacSignature({ header: 'x-signature', secrets: [secret, undefined] }),
  publicKeySignature({ header: 'x-signature', publicKeys: [secret, undefined] }),
  messageSignature({ publicKeys: secret, url: 'https://merchant.example/callbacks' }),
];
transferCallbackHandler({ ...options, verify: ready });
for (const verify of ready) transferCallbackHandler({ ...options, verify });
const all = [...ready, own];
transferCallbackRouter({ ...options, verify: all });
transferCallbackListener({ ...options, verify: all });
for (const verify of all) {
  transferCallbackRouter({ ...options, verify });
  transferCallbackListener({ ...options, verify });
}

// Without annotation, a verifier sees the request of its server and the callback, if there is one.
transferCallbackRouter({
  ...options,
  verify(request, callback, body) {
    expectTypeOf(request).toEqualTypeOf<Request>();
    expectTypeOf(callback).toEqualTypeOf<TransferCallback | undefined>();
    expectTypeOf(body).toEqualTypeOf<Uint8Array | undefined>();
    return request.get('x-gateway') === 'payouts';
  },
});
transferCallbackListener({
  ...options,
  verify: async (request, callback) => {
    expectTypeOf(request).toEqualTypeOf<IncomingMessage>();
    expectTypeOf(callback).toEqualTypeOf<TransferCallback | undefined>();
    await Promise.resolve();
    return true;
  },
});
transferCallbackHandler({
  ...options,
  verify(request, callback) {
    expectTypeOf(request).toEqualTypeOf<WebRequest>();
    expectTypeOf(callback).toEqualTypeOf<TransferCallback | undefined>();
    return request.headers.get('x-gateway') === 'payouts';
  },
});
const ofTheWeb: Verifier<unknown, globalThis.Request> = (request) => request.headers.has('x-gateway');
transferCallbackHandler({ ...options, verify: [ofTheWeb, urlToken(secret)] });

// With a function of the request as `secrets` a verifier is asynchronous, and has no secret of its own to sign with.
const signature = hmacSignature({ header: 'x-signature', secrets: secret });
expectTypeOf(signature).returns.toEqualTypeOf<boolean>();
expectTypeOf(signature.sign('{}')).toEqualTypeOf<Record<string, string>>();
const ofTenant = hmacSignature({ header: 'x-signature', secrets: ({ params }: Request) => params.tenant?.toString() });
expectTypeOf(ofTenant).returns.toEqualTypeOf<Promise<boolean>>();
transferCallbackRouter({ ...options, verify: [ofTenant, urlToken(secret)] });
const ofPath = hmacSignature({
  header: 'x-signature',
  secrets: async ({ url }) => {
    expectTypeOf(url).toEqualTypeOf<string | undefined>();
    await Promise.resolve();
    return [secret, undefined];
  },
});
transferCallbackRouter({ ...options, verify: ofPath });
transferCallbackListener({ ...options, verify: ofPath });
transferCallbackHandler({ ...options, verify: ofPath });
ofPath.sign(Buffer.from('{}'), { secret, headers: { 'x-id': '7' } });
// @ts-expect-error -- which URL?
export const ofAnyUrl = () => messageSignature({ publicKeys: secret });
// @ts-expect-error -- Express's request.
transferCallbackListener({ ...options, verify: ofTenant });
// @ts-expect-error -- which secret?
ofPath.sign('{}');
// @ts-expect-error -- a value is a text.
signature.sign('{}', { headers: { 'x-id': 7 } });

// The handlers keep their types beside a verifier that does not care about the callback.
const fromProxy: Verifier<unknown, Request> = (request) => request.hostname === 'merchant.example';
transferCallbackRouter({
  ...options,
  verify: [fromProxy, perTransfer],
  onFailed(callback) {
    expectTypeOf(callback).toEqualTypeOf<TransferFailed>();
  },
});

// A verifier of one's own gets its properties with Object.assign, and a wrapper passes them on.
const reading = Object.assign((request: IncomingMessage) => request.url === '/token', { readsPath: true });
const early: Verifier<unknown> = Object.assign(() => true, { readsCallback: false });
const wrapped = Object.assign((...args: Parameters<typeof perTransfer>) => perTransfer(...args), {
  readsPath: perTransfer.readsPath,
});
transferCallbackRouter({ ...options, verify: [reading, early, wrapped] });
transferCallbackListener({ ...options, verify: wrapped });
expectTypeOf(urlToken(secret).readsPath).toEqualTypeOf<boolean | undefined>();
// @ts-expect-error -- a boolean.
transferCallbackRouter({ ...options, verify: Object.assign(() => true, { readsPath: '/:token' }) });

// What may be missing in the environment is accepted here, and refused when the verifier is made.
const { CALLBACK_SECRET, CALLBACK_SECRET_PREVIOUS, CALLBACK_PASSWORD } = process.env;
export const fromEnvironment = () => [
  urlToken(CALLBACK_SECRET),
  transferToken([CALLBACK_SECRET, CALLBACK_SECRET_PREVIOUS]),
  headerToken('x-token', CALLBACK_SECRET),
  basicAuth({ username: 'service', password: CALLBACK_PASSWORD }),
  hmacSignature({ header: 'x-signature', secrets: CALLBACK_SECRET }),
];
// @ts-expect-error -- no service may use it any more.
export const weak = () => hmacSignature({ header: 'x-signature', secrets: CALLBACK_SECRET, algorithm: 'md5' });
// @ts-expect-error -- null is no secret, and none that is missing.
export const nothing = () => urlToken(null);

// A plain Node server has no Express request to give.
// @ts-expect-error -- `hostname` is Express's.
transferCallbackListener({ ...options, verify: fromProxy });
// @ts-expect-error -- as one of a list, too.
transferCallbackListener({ ...options, verify: [own, fromProxy] });
// @ts-expect-error -- `get` is Express's.
transferCallbackListener({ ...options, verify: (request: Request) => request.get('x-gateway') === 'payouts' });

// A web request has no headers of Node.
// @ts-expect-error -- `Headers` are read with `get`.
transferCallbackHandler({ ...options, verify: own });

// A response is a boolean: a header that is merely there is none.
// @ts-expect-error -- a string or a list, or undefined.
transferCallbackRouter({ ...options, verify: (request) => request.headers['x-gateway'] });
// @ts-expect-error -- the callback may be missing.
transferCallbackRouter({ ...options, verify: (_request, callback) => callback.data.amount < 1_000_000 });
// @ts-expect-error -- the secret itself is no verifier.
transferCallbackRouter({ ...options, verify: secret });
// @ts-expect-error -- urlToken, not called.
transferCallbackRouter({ ...options, verify: urlToken });
// @ts-expect-error -- a secret is text.
headerToken('x-token', Buffer.from(secret));
// @ts-expect-error -- no password.
basicAuth({ username: 'service' });
// @ts-expect-error -- a list.
ipAllowList('203.0.113.7');
