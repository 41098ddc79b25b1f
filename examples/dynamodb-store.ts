import { fileURLToPath } from 'node:url';
import {
  ConditionalCheckFailedException,
  CreateTableCommand,
  DeleteItemCommand,
  DynamoDBClient,
  GetItemCommand,
  ResourceInUseException,
  TransactWriteItemsCommand,
  UpdateItemCommand,
  waitUntilTableExists,
  type TransactWriteItem,
} from '@aws-sdk/client-dynamodb';
import {
  transferCallbackReceiver,
  type CallbackStore,
  type Claim,
  type ClaimRequest,
  type HandlerContext,
  type TransferCallback,
} from 'transfer-callbacks/web';
import { transferSucceeded } from 'transfer-callbacks/testing';

/** The handler's `context.tx`. */
export interface DynamoTx {
  /**
   * Adds writes to the transaction, 99 in all. They are sent with the record when the handler has succeeded. DynamoDB
   * keeps all of them or none.
   */
  write(...items: TransactWriteItem[]): void;
}

const text = (value: string) => ({ S: value });
const number = (value: number) => ({ N: String(value) });
/** The values of `:now`, `:end` and `:seconds`, for an end in `ms`. */
function times(ms: number) {
  const now = Date.now();
  return { ':now': number(now), ':end': number(now + ms), ':seconds': number(Math.ceil((now + ms) / 1_000)) };
}

const setEnd = 'expires_at = :end, delete_after = :seconds';
const isHeld = 'holder = :token AND attribute_not_exists(fingerprint)';

/**
 * Keeps claims in a DynamoDB table with the text `id` as its key. Set the time to live of the table to `delete_after`.
 * DynamoDB compares no time with its own clock, so the clocks of your processes must agree to within a few seconds. It
 * takes no reversals: a receiver with `onReversed` refuses it, because it has no claim of both records.
 */
export function dynamoStore(client: DynamoDBClient, table: string): CallbackStore<DynamoTx> {
  const itemOf = (id: string) => ({ TableName: table, Key: { id: text(id) } });

  async function find(id: string) {
    const { Item } = await client.send(new GetItemCommand({ ...itemOf(id), ConsistentRead: true }));
    // DynamoDB deletes what has expired some days late.
    return Item !== undefined && Number(Item.expires_at?.N) > Date.now() ? Item : undefined;
  }

  function toClaim(id: string, { token, fingerprint, leaseMs, retentionMs }: ClaimRequest): Claim<DynamoTx> {
    const writes: TransactWriteItem[] = [];
    let hasEnded = false;
    return {
      tx: {
        write(...items) {
          if (hasEnded) throw new Error('The handler has ended, so nothing can be written with its record.');
          writes.push(...items);
        },
      },
      renew: () =>
        isMet(
          client.send(
            new UpdateItemCommand({
              ...itemOf(id),
              UpdateExpression: `SET ${setEnd}`,
              ConditionExpression: `${isHeld} AND expires_at > :now`,
              ExpressionAttributeValues: { ':token': text(token), ...times(leaseMs) },
            }),
          ),
        ),
      async settle() {
        hasEnded = true;
        const values = { ':token': text(token), ':fingerprint': text(fingerprint), ...times(retentionMs) };
        const record = {
          ...itemOf(id),
          UpdateExpression: `SET fingerprint = :fingerprint, handled_at = :now, ${setEnd}`,
          ConditionExpression: isHeld,
          ExpressionAttributeValues: values,
        };
        try {
          await client.send(new TransactWriteItemsCommand({ TransactItems: [{ Update: record }, ...writes] }));
        } catch (error) {
          // The client may have sent it again after a lost reply, and the second one found the record of the first.
          const item = await find(id).catch(() => undefined);
          if (item?.holder?.S !== token || item.fingerprint === undefined) throw error;
        }
        return { overlapped: false };
      },
      async release() {
        hasEnded = true;
        const values = { ':token': text(token) };
        const held = { ...itemOf(id), ConditionExpression: isHeld, ExpressionAttributeValues: values };
        await isMet(client.send(new DeleteItemCommand(held)));
      },
    };
  }

  return {
    transactional: true,
    async claim(id, request) {
      // The same token may claim again, because a reply may have been lost.
      const free = `attribute_not_exists(id) OR expires_at <= :now OR (${isHeld})`;
      const claim = new UpdateItemCommand({
        ...itemOf(id),
        UpdateExpression: `SET holder = :token, ${setEnd} REMOVE fingerprint, handled_at`,
        ConditionExpression: free,
        ExpressionAttributeValues: { ':token': text(request.token), ...times(request.leaseMs) },
      });
      if (await isMet(client.send(claim))) return { state: 'claimed', claim: toClaim(id, request) };
      const fingerprint = (await find(id))?.fingerprint?.S;
      return fingerprint === undefined ? { state: 'in_progress' } : { state: 'handled', fingerprint };
    },
    async read(id) {
      const item = await find(id);
      if (item === undefined) return { state: 'free' };
      const delivery = String(item.holder?.S);
      const expiresAt = new Date(Number(item.expires_at?.N));
      if (item.fingerprint?.S === undefined) {
        return { state: 'claimed', delivery, leaseLeftMs: expiresAt.getTime() - Date.now() };
      }
      const handledAt = new Date(Number(item.handled_at?.N));
      return { state: 'handled', fingerprint: item.fingerprint.S, delivery, handledAt, expiresAt };
    },
    forget(id, fingerprint) {
      const seen = {
        ...itemOf(id),
        ConditionExpression: 'fingerprint = :fingerprint AND expires_at > :now',
        ExpressionAttributeValues: { ':fingerprint': text(fingerprint), ':now': number(Date.now()) },
      };
      return isMet(client.send(new DeleteItemCommand(seen)));
    },
  };
}

/** Resolves with whether the condition of a write was met. */
async function isMet(sent: Promise<unknown>): Promise<boolean> {
  try {
    await sent;
    return true;
  } catch (error) {
    if (error instanceof ConditionalCheckFailedException) return false;
    throw error;
  }
}

/** Adds up what was paid in each currency. A second run would add it again, so it goes with the record. */
export function addUp({ data }: TransferCallback, { tx }: HandlerContext<DynamoTx>): void {
  tx.write({
    Update: {
      TableName: 'paid',
      Key: { id: text(data.currency) },
      UpdateExpression: 'ADD amount :amount',
      ExpressionAttributeValues: { ':amount': { N: String(data.amount) } },
    },
  });
}

/** Creates a table with the text `id` as its key, unless it exists. */
export async function createTable(client: DynamoDBClient, name: string): Promise<void> {
  const table = {
    TableName: name,
    KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' as const }],
    AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' as const }],
    BillingMode: 'PAY_PER_REQUEST' as const,
  };
  await client.send(new CreateTableCommand(table)).catch((error: unknown) => {
    if (!(error instanceof ResourceInUseException)) throw error;
  });
  await waitUntilTableExists({ client, minDelay: 1, maxWaitTime: 60 }, { TableName: name });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const client = new DynamoDBClient(); // Reads AWS_REGION, and AWS_ENDPOINT_URL_DYNAMODB for an emulator.
  await createTable(client, 'transfer_callbacks');
  await createTable(client, 'paid');

  const store = dynamoStore(client, 'transfer_callbacks');
  // A failure adds nothing. Your own handler refunds it.
  const receiver = transferCallbackReceiver({ store, onSuccess: addUp, onFailed: () => undefined });
  const callback = transferSucceeded();
  for (const delivery of ['first', 'second']) {
    console.log(`The ${delivery} delivery: ${(await receiver.receive(callback)).outcome}`);
  }
  const { Item } = await client.send(
    new GetItemCommand({ TableName: 'paid', Key: { id: text(callback.data.currency) } }),
  );
  console.log(`Paid in all: ${Item?.amount?.N} ${callback.data.currency}`);
}
