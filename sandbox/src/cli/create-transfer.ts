import { UsageError } from '../../../src/cli/arguments.js';
import type { TransferSandbox } from '../index.js';

/** Creates a transfer at a sandbox. Throws UsageError with its reason if it refuses. */
export async function createTransfer({ baseUrl, keys }: TransferSandbox, request: object): Promise<void> {
  const { apiKey, apiSecret } = keys.valid;
  const created = await fetch(`${baseUrl}/transactions/transfer`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'x-api-key': apiKey, 'x-api-secret': apiSecret },
    body: JSON.stringify(request),
  });
  if (created.ok) return;
  const { message } = (await created.json()) as { message: string };
  throw new UsageError(message);
}
