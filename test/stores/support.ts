import type { CallbackStore, Claim, ClaimRequest } from 'transfer-callbacks';
import { expect } from 'vitest';

export const fingerprint = '["SUCCESS",15000,"XAF","payout 1"]';

/** What a claim asks for. */
export const request = { token: 'the-token', fingerprint, leaseMs: 10_000, retentionMs: 60_000 };

/** What the claim of another delivery asks for. */
export const requestOf = (token: string) => ({ ...request, token });

/** Claims an id that is free. */
export async function claimFree<Tx>(
  store: CallbackStore<Tx>,
  changes: Partial<ClaimRequest> = {},
  id: string = crypto.randomUUID(),
): Promise<Claim<Tx>> {
  const reply = await store.claim(id, { ...request, ...changes });
  return reply.state === 'claimed' ? reply.claim : expect.fail(reply.state);
}

/** Resolves with whether a claim is handled. */
export function settles(claim: Pick<Claim<unknown>, 'settle'>): Promise<boolean> {
  return claim.settle().then(
    () => true,
    () => false,
  );
}
