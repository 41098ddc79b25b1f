// For a function URL, or an HTTP API of API Gateway with payloads of version 2.0.
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from 'aws-lambda';
import { transferCallbackHandler } from 'transfer-callbacks/web';
import { options } from './options.ts';

const handle = transferCallbackHandler(options);

export async function handler(event: APIGatewayProxyEventV2): Promise<APIGatewayProxyStructuredResultV2> {
  const { domainName, http } = event.requestContext;
  const request = new Request(`https://${domainName}${event.rawPath}`, {
    method: http.method,
    headers: event.headers as Record<string, string>,
    body: event.body ? Buffer.from(event.body, event.isBase64Encoded ? 'base64' : 'utf8') : null,
  });
  const response = await handle(Object.assign(request, { ip: http.sourceIp }));
  return { statusCode: response.status, headers: Object.fromEntries(response.headers), body: await response.text() };
}
