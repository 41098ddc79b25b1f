import { setTimeout } from 'node:timers/promises';

/** Imitates your own code. Takes as long as a database would, and prints each call. */
export const payouts = {
  markPaid: async (externalId: string, amount: number): Promise<void> => {
    await setTimeout(5);
    console.log(`Paid ${externalId}: ${amount}`);
  },
  refund: async (externalId: string, reason: string | null): Promise<void> => {
    await setTimeout(5);
    console.log(`Refunded ${externalId}: ${reason ?? 'no reason given'}`);
  },
};

export const deposits = {
  credit: async (externalId: string, amount: number): Promise<void> => {
    await setTimeout(5);
    console.log(`Credited ${externalId}: ${amount}`);
  },
};
