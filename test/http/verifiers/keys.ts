import { generateKeyPairSync, type KeyObject } from 'node:crypto';

export interface KeyPair {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

function makeTwo(make: () => KeyPair): readonly [own: KeyPair, foreign: KeyPair] {
  return [make(), make()];
}

/** Two pairs of keys of each kind that the verifiers take. */
export const keyPairs = {
  rsa: makeTwo(() => generateKeyPairSync('rsa', { modulusLength: 2_048 })),
  p256: makeTwo(() => generateKeyPairSync('ec', { namedCurve: 'P-256' })),
  p384: makeTwo(() => generateKeyPairSync('ec', { namedCurve: 'P-384' })),
  ed25519: makeTwo(() => generateKeyPairSync('ed25519')),
};

export function toPem({ publicKey }: KeyPair): string {
  return publicKey.export({ type: 'spki', format: 'pem' }).toString();
}

export function toPrivatePem({ privateKey }: KeyPair): string {
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}
