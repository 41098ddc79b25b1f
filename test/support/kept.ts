import type { TransferCallbackReceiver } from 'transfer-callbacks';
import { vi } from 'vitest';

/** Has a receiver claim once, as after a deploy, and waits until its store tells since when it keeps records. */
export async function keepRecords({
  check,
  inspect,
}: Pick<TransferCallbackReceiver, 'check' | 'inspect'>): Promise<void> {
  await check();
  await vi.waitUntil(async () => {
    const record = await inspect('never-claimed');
    return record.state === 'free' && record.kept !== undefined;
  });
}
