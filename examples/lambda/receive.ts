import { transferCallbackHandler, urlToken } from 'transfer-callbacks/web';
import { receiver } from './payouts.js';

const handle = transferCallbackHandler({ receiver, verify: urlToken(process.env.CALLBACK_SECRET) });

/** Of a function URL, or of an HTTP API of API Gateway with payloads of version 2.0. */
interface Event {
  rawPath: string;
  headers: Record<string, string>;
  body?: string;
  isBase64Encoded: boolean;
  requestContext: { domainName: string; http: { method: string; sourceIp: string } };
}

export async function handler({ rawPath, headers, body, isBase64Encoded, requestContext }: Event) {
  const { domainName, http } = requestContext;
  const bytes = body ? Buffer.from(body, isBase64Encoded ? 'base64' : 'utf8') : null;
  const request = new Request(`https://${domainName}${rawPath}`, { method: http.method, headers, body: bytes });
  const response = await handle(Object.assign(request, { ip: http.sourceIp }));
  return { statusCode: response.status, headers: Object.fromEntries(response.headers), body: await response.text() };
}
