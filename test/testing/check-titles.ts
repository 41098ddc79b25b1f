// The titles of the checks of `storeContract`, by a short name.
export const lasts = 'a lease that is not renewed lasts its length, and then lapses';
export const renewedLasts = 'a renewed lease lasts its length from the last renewal, and then lapses';
export const notEnded =
  'a claim that is renewed has not `ended` when its first lease is over, nor when another claim has ended';
export const keysApart = 'keys of up to 255 characters have separate records, whatever they contain';
export const facts =
  'an externalId of 1 500 characters of all kinds is accepted, and a fingerprint of 2 000 characters comes back unchanged';
export const outlasts = 'a handled record outlasts its lease, a late renewal and a later claim';
export const fiftyFree = 'of fifty concurrent claims exactly one is granted';
export const fiftyReleased = 'a released callback is granted to exactly one of fifty concurrent claims';
export const fiftyLapsed = 'a lapsed lease is taken over by exactly one of fifty concurrent claims';
export const fiftyForgotten =
  'a callback whose retention has ended is granted to exactly one of fifty concurrent claims';
export const ownToken = 'a claim that is sent twice with one token is granted both times, and counts as one claim';
export const everyToken =
  'the store replies to every claim of a handled callback with the fingerprint that it was handled with';
export const recordedTwice = 'a second settle changes nothing and reports no overlap';
export const ownRenewal =
  'after a release a renewal is refused, and the next claim is granted, and handled with its own facts';
export const ownRelease = 'a release after settling changes nothing';
export const lateRenewal =
  "a late holder's renewal is refused and changes nothing, before and after the next holder has handled";
export const goneRenewal =
  "a late holder's renewal after the next holder's release is refused, and leaves the callback free";
export const lateRelease = "a late holder's release changes nothing, before and after the next holder has handled";
export const lateSuccess =
  "a late holder's success is kept and reported as overlapped; a transactional store rejects it";
export const lostSuccess =
  "a late holder's success is kept even after the next holder's release; a transactional store rejects it";
export const retention =
  'retention counts from settling; when it has ended, the callback can be claimed and handled again';
export const manyRecords = 'a handled record is kept when 150 others are handled';
export const readFree = 'a callback that is unknown, released, lapsed or expired is read as free';
export const readClaimed =
  'a claimed callback is read as claimed, and the delivery, lease and time that are shown belong to its claim';
export const readHandled =
  'a handled callback is read with the fingerprint of its claim, and with times that enclose the settling';
export const readHarmless = 'a hundred reads extend no lease, take it from no holder, and block no claim';
export const forgetsSeen =
  'forget changes nothing if the callback is unknown, claimed, or handled with another fingerprint';
export const forgetsOne =
  'of fifty concurrent calls of forget exactly one deletes the record, and the callback can be handled again';
export const lateAfterForget =
  "a late holder's success is recorded even after a forget; a transactional store rejects it";
export const writeKept = 'a write through `tx` is kept once its claim is handled, and `tx` writes nothing after that';
export const writeUndone = 'a write through `tx` is undone when its claim is released';
export const writeLeft = 'writes that a handler has left running write nothing once its claim is released';
export const lateWrite = "a late holder's write is not kept beside that of the next holder";
export const failureSwallowed = 'a handler that swallows a failed statement is not handled without its write';
export const rolledBack = 'a handler that rolls its transaction back is not handled without its write';
export const deadlockSwallowed = 'a handler that swallows a deadlock is not handled without its write';
export const refundApart = 'the refund of a handled transfer has a record of its own, and settles with its own facts';
export const refundReleased = 'a refund that is released can be claimed again, and settles alone';
export const refundsRead = 'read and forget tell the record of a refund from the record of its transfer';
export const fiftyBoth =
  'of fifty concurrent claims of both records exactly one is granted, also if it is sent twice, and holds both';
export const transferSettledFirst =
  'a claim of both records is refused if the transfer is handled, and leaves the refund free';
export const refundSettledFirst =
  'a claim of both records is refused if the refund is handled, and leaves the transfer free';
export const bothExclude = 'while a transfer is held, neither its refund nor both are granted, and the other way round';
export const bothLapse = 'a claim of both records that lapses frees both';
export const bothEnded = 'a claim of both records is granted once both records have ended';
