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

// The test case of RFC 9421, appendix B.2.3.
const digest = 'sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:';

export const rfc = {
  url: 'https://example.com/foo?param=Value&Pet=dog',
  body: '{"hello": "world"}',
  headers: { Date: 'Tue, 20 Apr 2021 02:07:55 GMT', 'Content-Digest': digest, 'Content-Length': '18' },
  createdMs: 1_618_884_473_000,
  publicKey: `-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAr4tmm3r20Wd/PbqvP1s2
+QEtvpuRaV8Yq40gjUR8y2Rjxa6dpG2GXHbPfvMs8ct+Lh1GH45x28Rw3Ry53mm+
oAXjyQ86OnDkZ5N8lYbggD4O3w6M6pAvLkhk95AndTrifbIFPNU8PPMO7OyrFAHq
gDsznjPFmTOtCEcN2Z1FpWgchwuYLPL+Wokqltd11nqqzi+bJ9cvSKADYdUAAN5W
Utzdpiy6LbTgSxP7ociU4Tn0g5I6aDZJ7A8Lzo0KSyZYoA485mqcO0GVAdVw9lq4
aOT9v6d+nb4bnNkQVklLQ3fVAvJm+xdDOp9LCNCN48V2pnDOkFV6+U9nV5oyc6XI
2wIDAQAB
-----END PUBLIC KEY-----`,
  input:
    '("date" "@method" "@path" "@query" "@authority" "content-type" "content-digest" "content-length")' +
    ';created=1618884473;keyid="test-key-rsa-pss"',
  signature:
    'bbN8oArOxYoyylQQUU6QYwrTuaxLwjAC9fbY2F6SVWvh0yBiMIRGOnMYwZ/5MR6fb0Kh1rIRASVxFkeGt683+qRpRRU5p2voTp768ZrCUb38K0fU' +
    'xN0O0iC59DzYx8DFll5GmydPxSmme9v6ULbMFkl+V5B1TP/yPViV7KsLNmvKiLJH1pFkh/aYA2HXXZzNBXmIkoQoLd7YfW91kE9o/CCoC1xMy7JA' +
    '1ipwvKvfrs65ldmlu9bpG6A9BmzhuzF8Eim5f8ui9eH8LZH896+QIF61ka39VBrohr9iyMUJpvRX2Zbhl5ZJzSRxpJyoEZAFL2FUo5fTIztsDZKE' +
    'gM4cUA==',
};
