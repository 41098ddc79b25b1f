// Calls the function of a file with an event for each HTTP request, as API Gateway does with payloads of version 2.0.
import { createServer } from 'node:http';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

interface Result {
  readonly statusCode: number;
  readonly headers: Record<string, string>;
  readonly body: string;
}

const [, , file = ''] = process.argv;
const { handler } = (await import(pathToFileURL(resolve(file)).href)) as {
  handler: (event: object) => Promise<Result>;
};

createServer((request, response) => {
  void (async () => {
    const body = Buffer.concat((await request.toArray()) as Buffer[]);
    // Both encodings occur: a body without a length arrives in base64.
    const isBase64Encoded = request.headers['content-length'] === undefined;
    const {
      statusCode,
      headers,
      body: text,
    } = await handler({
      version: '2.0',
      rawPath: request.url,
      headers: request.headers,
      requestContext: {
        domainName: 'function.example',
        http: { method: request.method, sourceIp: request.socket.remoteAddress },
      },
      body: body.length === 0 ? undefined : body.toString(isBase64Encoded ? 'base64' : 'utf8'),
      isBase64Encoded,
    });
    response.writeHead(statusCode, headers).end(text);
  })();
}).listen(Number(process.env.PORT));
