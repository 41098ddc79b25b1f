import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { DynamoDBClient, GetItemCommand } from '@aws-sdk/client-dynamodb';
import type { HandlerContext } from 'transfer-callbacks';
import { storeContract, transferSucceeded, type StoreTransaction } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { receiverOf } from '../core/support.js';
import { addUp, createTable, dynamoStore, type DynamoTx } from '../../examples/dynamodb-store.js';
import { claimFree } from '../stores/support.js';
import { startLossyProxy } from '../support/servers/lossy-proxy.js';
import { run } from './support.js';

// The server is a program in JavaScript, which serves all checks at the same time: on a busy machine that takes
// minutes.
vi.setConfig({ testTimeout: 180_000 });

interface DynamoServer {
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
async function startDynamo(): Promise<DynamoServer> {
  const database = (createRequire(import.meta.url)('dynalite') as (options: object) => Server)({ createTableMs: 0 });
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

let server: DynamoServer;
let client: DynamoDBClient;
const clients: DynamoDBClient[] = [];

beforeAll(async () => {
  server = await startDynamo();
  client = connect();
  for (const table of ['claims', 'paid']) await createTable(client, table);
});
afterAll(async () => {
  for (const each of clients) each.destroy();
  await server.stop();
});

function connect(port = server.port): DynamoDBClient {
  const credentials = { accessKeyId: 'any', secretAccessKey: 'any' };
  const made = new DynamoDBClient({ endpoint: `http://127.0.0.1:${port}`, region: 'af-south-1', credentials });
  clients.push(made);
  return made;
}

const makeStore = () => dynamoStore(connect(), 'claims');

/** What was paid in a currency that no other test uses. */
async function readPaid(currency: string): Promise<number> {
  const { Item } = await client.send(new GetItemCommand({ TableName: 'paid', Key: { id: { S: currency } } }));
  return Number(Item?.amount?.N ?? 0);
}

async function pay(tx: DynamoTx, currency: string): Promise<void> {
  await Promise.resolve();
  addUp(transferSucceeded({ amount: 1, currency }), { tx } as HandlerContext<DynamoTx>);
}

const transaction: StoreTransaction<DynamoTx> = { write: pay, count: readPaid };

describe('the store contract, through two clients', () => {
  test.concurrent.each(storeContract)('$title', ({ check }) => check(makeStore(), { transaction, other: makeStore() }));
});

describe('dynamodb-store.ts', () => {
  test('of two writes of a handler none is kept if the condition of one is not met', async () => {
    const currency = crypto.randomUUID();
    const receiver = receiverOf({
      store: makeStore(),
      onFailed: addUp,
      onSuccess(callback, context) {
        addUp(callback, context);
        context.tx.write({
          Update: {
            TableName: 'paid',
            Key: { id: { S: 'an account' } },
            UpdateExpression: 'ADD amount :amount',
            ConditionExpression: 'amount >= :amount',
            ExpressionAttributeValues: { ':amount': { N: '1' } },
          },
        });
      },
    });
    const callback = transferSucceeded({ amount: 700, currency });
    for (let deliveries = 0; deliveries < 2; deliveries += 1) {
      const outcome = await receiver.receive(callback);
      expect(outcome).toMatchObject({ outcome: 'store_unavailable', error: { name: 'TransactionCanceledException' } });
    }
    expect(await readPaid(currency)).toBe(0);
  });

  test('a success is recorded and written once although the reply to its transaction is lost', async () => {
    const proxy = await startLossyProxy(server.port);
    onTestFinished(() => proxy.close());
    const store = dynamoStore(connect(proxy.port), 'claims');
    const currency = crypto.randomUUID();
    const claim = await claimFree(store, { leaseMs: 30_000 });
    await pay(claim.tx, currency);

    proxy.lose('reply', 'TransactWriteItems');
    expect(await claim.settle()).toEqual({ overlapped: false });

    expect([proxy.lost(), await readPaid(currency)]).toEqual([1, 1]);
    await expect(pay(claim.tx, currency)).rejects.toThrow('The handler has ended');
  });

  test('the example adds up a callback that comes twice once', async () => {
    const env = {
      AWS_ENDPOINT_URL_DYNAMODB: `http://127.0.0.1:${server.port}`,
      AWS_REGION: 'af-south-1',
      AWS_ACCESS_KEY_ID: 'any',
      AWS_SECRET_ACCESS_KEY: 'any',
      NODE_OPTIONS: '--no-warnings', // of the SDK, about Node 20
    };
    for (const total of [15_000, 30_000]) {
      const { exitCode, output } = run('dynamodb-store.ts', env);
      expect(await exitCode).toBe(0);
      expect(output()).toBe(
        `The first delivery: processed\nThe second delivery: duplicate\nPaid in all: ${total} XAF\n`,
      );
    }
  });
});
