// The titles of the checks of `storeContract`, by a short name.
export const lasts = 'a lease lasts its length without renewal, and then lapses';
export const renewedLasts = 'a renewed lease lasts its length from the last renewal, and then lapses';
export const keysApart = 'keys of up to 255 characters stay apart, whatever they contain';
export const fingerprint = 'a fingerprint of 2 000 characters comes back unchanged';
export const outlasts = 'a settled record outlasts its lease, and a renewal that comes too late';
export const fiftyFree = 'of fifty concurrent claims exactly one is granted';
export const fiftyReleased = 'a released callback is granted to exactly one of fifty concurrent claims';
export const fiftyLapsed = 'a lapsed lease is taken over by exactly one of fifty concurrent claims';
export const fiftyForgotten =
  'a callback whose retention has ended is granted to exactly one of fifty concurrent claims';
export const ownToken = 'a claim that is sent twice with one token is granted twice, and is one claim';
export const everyToken =
  'a settled callback is settled for every token, with the fingerprint that it was settled with';
export const settledTwice = 'settling twice is settling once';
export const ownRenewal = 'a renewal after the release is refused, and leaves the callback free';
export const ownRelease = 'a release after settling changes nothing';
export const lateRenewal =
  "a late holder's renewal is refused and changes nothing, before and after the next holder has settled";
export const goneRenewal =
  "a late holder's renewal after the next holder's release is refused, and leaves the callback free";
export const lateRelease = "a late holder's release changes nothing, before and after the next holder has settled";
export const lateSuccess =
  "a late holder's success is kept and reported as overlapped; a transactional store rejects it";
export const lostSuccess =
  "a late holder's success is kept even after the next holder's release; a transactional store rejects it";
export const retention = 'retention counts from settling, and ends; then the callback may be settled anew';
