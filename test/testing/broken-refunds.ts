import { memoryStore, type CallbackStore, type Claim, type ClaimRequest } from 'transfer-callbacks';
import { changed, type BrokenStore } from './changed-stores.js';

type Store = ReturnType<typeof memoryStore>;

/** What is wrong in a store whose claims may have both records. */
interface Faults {
  /** Changes the request for the refund in a claim of both records. */
  readonly refund?: Partial<ClaimRequest>;
  readonly keepsRefund?: boolean;
  readonly keepsTransfer?: boolean;
  readonly grantsBeside?: boolean;
}

/** A right store whose claims may have both records, but for its faults. */
export function claimingBoth(faults: Faults = {}): CallbackStore {
  const store = memoryStore();
  return {
    ...store,
    claimsBoth: true,
    async claim(key, request) {
      if (request.record === 'both') return claimBoth(store, key, request, faults);
      const isHeld = request.record === 'reversal' && (await store.read(key)).state === 'claimed';
      return isHeld && faults.grantsBeside !== true ? { state: 'in_progress' } : store.claim(key, request);
    },
  };
}

async function claimBoth(
  store: Store,
  key: string,
  given: ClaimRequest,
  { refund: changes, keepsRefund, keepsTransfer }: Faults,
): ReturnType<Store['claim']> {
  const request = { ...given, record: undefined };
  const first = keepsTransfer === true ? await store.claim(key, request) : undefined;
  const refund = await store.claim(key, { ...request, ...changes, record: 'reversal' });
  if (refund.state !== 'claimed') return refund;
  const transfer = first ?? (await store.claim(key, request));
  if (transfer.state === 'claimed') return { state: 'claimed', claim: pair(transfer.claim, refund.claim) };
  if (keepsRefund !== true) await refund.claim.release();
  return transfer;
}

function pair(one: Claim, other: Claim): Claim {
  return {
    tx: undefined,
    renew: async () => (await one.renew()) && other.renew(),
    async settle() {
      const [{ overlapped }] = await Promise.all([one.settle(), other.settle()]);
      return { overlapped };
    },
    async release() {
      await Promise.all([one.release(), other.release()]);
    },
  };
}

/** A store that takes a claim of both records for a claim of the transfer. */
function claimingOne(): CallbackStore {
  const store = memoryStore();
  return {
    ...store,
    claimsBoth: true,
    claim: (key, { record, ...request }) => store.claim(key, record === 'reversal' ? { ...request, record } : request),
  };
}

export const brokenRefunds: readonly BrokenStore[] = [
  {
    fault: 'ignores which record is claimed',
    make: changed((store) => ({ claim: (key, request) => store.claim(key, { ...request, record: undefined }) })),
    caughtBy: ['the refund of a handled'],
    says: /the refund of a handled transfer is handled, not free/,
  },
  {
    fault: 'claims the transfer with its refund',
    make: changed((store) => ({
      async claim(key, request) {
        const reply = await store.claim(key, request);
        if (request.record === 'reversal') await store.claim(key, { ...request, record: undefined });
        return reply;
      },
    })),
    caughtBy: ['a refund that is released'],
    says: /the claim of a refund has handled its transfer/,
  },
  {
    fault: 'reads the transfer in place of its refund',
    make: changed((store) => ({ read: (key) => store.read(key) })),
    caughtBy: ['read and forget tell'],
    says: /`read` shows another record/,
  },
  {
    fault: 'forgets the transfer in place of its refund',
    make: changed((store) => ({ forget: (key, fingerprint) => store.forget(key, fingerprint) })),
    caughtBy: ['read and forget tell'],
    says: /`forget` has ended the other record/,
  },
  {
    fault: 'claims the transfer alone where both records are claimed',
    make: claimingOne,
    caughtBy: [
      'of fifty concurrent claims of both',
      'a claim of both records is refused if the transfer',
      'a claim of both records is refused if the refund',
    ],
    says: /while both records are held, a claim of reversal is claimed|has the facts of the refund|state: 'claimed'/,
  },
  {
    fault: 'keeps the refund claimed that it has refused',
    make: () => claimingBoth({ keepsRefund: true }),
    caughtBy: ['a claim of both records is refused if the transfer'],
    says: /a free callback was not granted/,
  },
  {
    fault: 'keeps the transfer claimed that it has refused',
    make: () => claimingBoth({ keepsTransfer: true }),
    caughtBy: ['a claim of both records is refused if the refund'],
    says: /a free callback was not granted/,
  },
  {
    fault: 'grants a refund while its transfer is held',
    make: () => claimingBoth({ grantsBeside: true }),
    caughtBy: ['while a transfer is held'],
    says: /while the transfer is held, a claim of reversal is claimed/,
  },
  {
    fault: 'keeps a claim of both records beyond its lease',
    make: () => claimingBoth({ refund: { leaseMs: 60_000 } }),
    caughtBy: ['a claim of both records that lapses'],
    says: /a lease of \d+ ms never ended/,
  },
  {
    fault: 'keeps the record of a refund longer than it was asked to',
    make: () => claimingBoth({ refund: { retentionMs: 600_000 } }),
    caughtBy: ['a claim of both records is granted'],
    says: /a handled record of \d+ ms never ended/,
  },
];
