// Signs by RFC 9421 as a service does, by code that shares nothing with that of the package.
import { createHash, sign } from 'node:crypto';
import { keyPairs, type KeyPair } from './keys.js';

export const nowMs = 1_790_000_000_000;
const now = nowMs / 1_000;
/** Where the service sends. Behind the proxy the request has another host and path. */
export const publicUrl = 'https://merchant.example/public/callbacks';
export const usualComponents = '"@method" "@authority" "@path" "signature-date" "content-digest" "content-type"';
const usualParams = `;alg="ecdsa-p256-sha256";keyid="HTTP_EC_P256_KEY:1";created=${now};expires=${now + 60}`;

export type SentHeaders = Record<string, string | string[] | undefined>;
export interface Signing {
  readonly keys?: KeyPair;
  readonly hash?: string | null;
  readonly options?: object;
  readonly components?: string;
  readonly params?: string;
  readonly label?: string;
  readonly digest?: string;
  /** What differs from the request. */
  readonly values?: Readonly<Record<string, string>>;
}

export function digestOf(body: string, algorithm = 'sha-512'): string {
  return `${algorithm}=:${createHash(algorithm.replace('-', '')).update(body).digest('base64')}:`;
}

/** Returns the headers of a callback that is signed. */
export function signMessage(body: string, signing: Signing = {}): SentHeaders {
  const { keys = keyPairs.p256[0], hash = 'sha256', options, label = 'sig-pp', digest = digestOf(body) } = signing;
  const { components = usualComponents, params = usualParams } = signing;
  const values: Readonly<Record<string, string>> = {
    ...{ '@method': 'POST', '@authority': 'merchant.example', '@path': '/public/callbacks', '@query': '?' },
    ...{ '@scheme': 'https', '@request-target': '/public/callbacks', '@target-uri': publicUrl },
    'content-type': 'application/json; charset=UTF-8',
    'content-digest': digest,
    'signature-date': '2026-09-21T14:13:20.000001Z',
    ...signing.values,
  };
  const lines = components.split(' ').map((each) => `${each}: ${values[/"([^"]*)"/.exec(each)?.[1] ?? ''] ?? ''}`);
  const base = [...lines, `"@signature-params": (${components})${params}`].join('\n');
  const signature = sign(hash, Buffer.from(base), { key: keys.privateKey, ...options }).toString('base64');
  return {
    'Content-Type': values['content-type'],
    'Content-Digest': digest,
    'Signature-Date': values['signature-date'],
    'Signature-Input': `${label}=(${components})${params}`,
    Signature: `${label}=:${signature}:`,
  };
}
