import { transferClient, type Transaction, type TransferClient } from '../client/index.js';
import { text, UsageError } from './arguments.js';

/** Options for commands that ask the service. Key and secret are no options: other users of the machine see those. */
export const serviceOptions = { service: text } as const;

/** What a transfer is known by. The rest may be personal, such as a wallet number. */
const shownFields = ['id', 'externalId', 'status', 'amount', 'currency', 'paymentMethod', 'provider', 'timestamp'];

const variables: Readonly<Record<string, string>> = {
  baseUrl: 'TRANSFER_SERVICE_URL',
  apiKey: 'TRANSFER_API_KEY',
  apiSecret: 'TRANSFER_API_SECRET',
};

/** Makes a client of the service that `--service` or the environment names; `undefined` without one. Throws UsageError. */
export function findClient({ service }: { readonly service?: string | undefined }): TransferClient | undefined {
  const { TRANSFER_SERVICE_URL, TRANSFER_API_KEY: apiKey, TRANSFER_API_SECRET: apiSecret } = process.env;
  const baseUrl = service ?? TRANSFER_SERVICE_URL;
  if (!baseUrl) return undefined;
  if (!apiKey || !apiSecret) {
    throw new UsageError('Expected TRANSFER_API_KEY and TRANSFER_API_SECRET in the environment, beside the service.');
  }
  try {
    return transferClient({ baseUrl, apiKey, apiSecret });
  } catch (error) {
    const named = service === undefined ? variables : { ...variables, baseUrl: '--service' };
    throw new UsageError((error as Error).message.replace(/`(\w+)`/g, (_, name: string) => named[name] ?? name));
  }
}

/** The same, where the service is required. */
export function requireClient(values: { readonly service?: string | undefined } = {}): TransferClient {
  const client = findClient(values);
  if (client !== undefined) return client;
  throw new UsageError('Expected TRANSFER_SERVICE_URL, TRANSFER_API_KEY and TRANSFER_API_SECRET in the environment.');
}

/** The fields of a transfer that may be printed. */
export function toShown(transaction: Transaction): Record<string, unknown> {
  return Object.fromEntries(shownFields.map((name) => [name, transaction[name]]));
}

/** What is paid out and how, in one line. Only ids and status are sure to be there (service §4.2). */
export function describePayout({ amount, currency, paymentMethod, provider }: Transaction): string {
  const isShown = (part: unknown): part is string | number => typeof part === 'string' || typeof part === 'number';
  const money = [amount, currency].filter(isShown).join(' ');
  return [money, paymentMethod, provider].filter(isShown).join('  ').trim();
}
