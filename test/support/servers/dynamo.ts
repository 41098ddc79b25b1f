import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import dynalite from 'dynalite';

export interface DynamoServer {
  readonly port: number;
  stop(): Promise<void>;
}

interface Reply {
  status: number;
  body: string;
}

type Item = Record<string, unknown>;
/** A write of a transaction, as it is sent alone. */
interface Write {
  TableName: string;
  Key: Item;
}

/**
 * Starts dynalite on a free port of the loopback. It has no transactions, so a server before it makes them of single
 * writes: it passes on one request at a time, and undoes the writes before one that is refused. It knows updates only.
 */
export async function startDynamo(): Promise<DynamoServer> {
  const database = dynalite({ createTableMs: 0 });
  const databasePort = await listen(database);
  let last: Promise<unknown> = Promise.resolve();

  const server = createServer((request, response) => {
    last = last.then(async () => {
      const sent = await text(request);
      const call = (operation: string, body: string) => send(databasePort, request.headers, operation, body);
      const operation = String(request.headers['x-amz-target']).replace(/.*\./, '');
      const { status, body } =
        operation === 'TransactWriteItems' ? await transact(call, sent) : await call(operation, sent);
      response.writeHead(status, { 'content-type': 'application/x-amz-json-1.0' }).end(body);
    });
  });
  const port = await listen(server);
  return {
    port,
    async stop() {
      for (const each of [server, database]) {
        each.closeAllConnections();
        await new Promise((resolve) => each.close(resolve));
      }
    },
  };
}

async function transact(call: (operation: string, body: string) => Promise<Reply>, sent: string): Promise<Reply> {
  const { TransactItems } = JSON.parse(sent) as { TransactItems: { Update: Write }[] };
  const undo: (() => Promise<Reply>)[] = [];
  for (const { Update } of TransactItems) {
    const { TableName, Key } = Update;
    const { body: before } = await call('GetItem', JSON.stringify({ TableName, Key, ConsistentRead: true }));
    const { status, body } = await call('UpdateItem', JSON.stringify(Update));
    if (status === 200) {
      const { Item } = JSON.parse(before) as { Item?: Item };
      undo.unshift(() =>
        Item === undefined
          ? call('DeleteItem', JSON.stringify({ TableName, Key }))
          : call('PutItem', JSON.stringify({ TableName, Item })),
      );
      continue;
    }
    for (const step of undo) await step();
    const { __type: type = '' } = JSON.parse(body) as { __type?: string };
    if (!type.endsWith('#ConditionalCheckFailedException')) return { status, body };
    const CancellationReasons = TransactItems.map((item) =>
      item.Update === Update ? { Code: 'ConditionalCheckFailed' } : { Code: 'None' },
    );
    const canceled = 'com.amazonaws.dynamodb.v20120810#TransactionCanceledException';
    return { status, body: JSON.stringify({ __type: canceled, CancellationReasons }) };
  }
  return { status: 200, body: '{}' };
}

async function send(port: number, headers: IncomingHttpHeaders, operation: string, body: string): Promise<Reply> {
  const { authorization = '', 'x-amz-date': date = '' } = headers as Record<string, string>;
  const response = await fetch(`http://127.0.0.1:${port}`, {
    method: 'POST',
    headers: {
      authorization,
      'x-amz-date': date,
      'x-amz-target': `DynamoDB_20120810.${operation}`,
      'content-type': 'application/x-amz-json-1.0',
    },
    body,
  });
  return { status: response.status, body: await response.text() };
}

async function listen(server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}
