import { createPrivateKey, createPublicKey, randomUUID } from 'node:crypto';
import { describeInvalid, UsageError } from '../../../../src/cli/arguments.js';
import type { PayoutService } from '../../../../src/core/payout-service.js';
import { invalidSecret } from '../../../../src/lib/checks.js';
import { didYouMean } from '../../../../src/lib/did-you-mean.js';
import type { TransferCallbackError } from '../../../../src/lib/errors.js';
import type { SignWith } from '../../attempt/signer.js';
import { namedServices, type NamedService } from './named-services.js';

/** The variable of the secret that is in no definition. */
export const secretVariable = 'CALLBACK_SECRET';

/** The samples of examples/services/payloads, and where they come from. */
interface Payloads {
  readonly source: string;
  /** The day on which the source was read. */
  readonly readOn: string;
  readonly success: unknown;
  readonly failed: unknown;
  readonly reversed?: unknown;
  readonly pending?: unknown;
  readonly ignored?: unknown;
}

/** A definition, and what its verifiers sign with. */
export interface Definition {
  readonly service: PayoutService;
  readonly signWith: SignWith;
  /** Set for a definition of examples/services. */
  readonly byName?: { readonly named: NamedService; readonly payloads: Payloads };
}

/** Whether this is a name, and no file: `./paystack.mjs` and `./paystack` are files. */
export function isName(service: string): boolean {
  return /^[\w-]*$/.test(service);
}

const expected = `Expected --service to be a file, such as ./service.mjs, or one of ${Object.keys(namedServices).join(', ')}.`;

/** Throws UsageError, with all names, if `--service` is the last argument or before another option. */
export function requireServiceValue(args: readonly string[]): void {
  const at = args.indexOf('--service');
  if (at >= 0 && (args[at + 1] ?? '-').startsWith('-')) throw new UsageError(expected);
}

/** Loads a definition by its name. `url` is the callback endpoint, which may be signed. Throws UsageError. */
export async function loadByName(name: string, url: string | undefined): Promise<Definition> {
  const named = Object.hasOwn(namedServices, name) ? namedServices[name] : undefined;
  if (named === undefined) {
    const meant = didYouMean(name, Object.keys(namedServices));
    const advice = meant === undefined ? '' : ` Did you mean \`${meant}\`?`;
    throw new UsageError(`${expected}${advice}`);
  }
  const variables = { [named.variable]: toProof(name, named), ...toSignedUrl(named, url) };
  const [definition, payloads] = (await Promise.all([
    withVariables(variables, () => import(`../../../../examples/services/${name}.ts`)).catch((error: unknown) => {
      throw explainSecret(error, describeSecret(name, named));
    }),
    import(`../../../../examples/services/payloads/${name}.json`),
  ])) as [Record<string, PayoutService>, { default: Payloads }];
  const service = definition[name];
  if (service === undefined) throw new Error(`${name}.ts does not export ${name}.`);
  const signWith = { secret: process.env[secretVariable], toOptions: named.toSignOptions };
  return { service, signWith, byName: { named, payloads: payloads.default } };
}

/** Returns what the definition verifies with: the secret itself, or the public key of a private one. */
function toProof(name: string, named: NamedService): string {
  const { secret: what, liveKey, isKeyPair } = named;
  if (what === undefined) return randomUUID(); // The definition needs a token. The right one is in the address.
  const secret = process.env[secretVariable];
  if (liveKey !== undefined && secret?.startsWith(liveKey) === true) {
    throw new UsageError(`Expected ${secretVariable} to be a key for tests, got one that begins with ${liveKey}.`);
  }
  const proof = isKeyPair === true ? findPublicKey(secret) : secret;
  if (proof !== undefined && proof !== '') return proof;
  if (secret === undefined || secret === '') {
    const example = `${secretVariable}=${isKeyPair === true ? '"$(cat test.pem)"' : '…'} npx transfer-sandbox …`;
    throw new UsageError(
      `Expected the environment variable ${secretVariable} to be ${describeSecret(name, named)}, got nothing. ` +
        `Write ${example} --service ${name}.`,
    );
  }
  const invalid = invalidSecret(secretVariable, describeSecret(name, named), secret);
  throw new UsageError(describeInvalid(secretVariable, invalid));
}

function describeSecret(name: string, { secret = '' }: NamedService): string {
  return `${secret} of ${name} that your endpoint has`;
}

/** Returns the public key of a private key, in PEM. */
function findPublicKey(pem = ''): string | undefined {
  try {
    const privateKey = createPrivateKey(pem.replaceAll('\\n', '\n'));
    return createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }).toString();
  } catch {
    return undefined;
  }
}

function toSignedUrl({ urlVariable }: NamedService, url: string | undefined): Readonly<Record<string, string>> {
  if (urlVariable === undefined) return {};
  const given = process.env[urlVariable];
  const signed = given === undefined || given === '' ? url : given;
  if (signed !== undefined) return { [urlVariable]: signed };
  throw new UsageError(`Expected ${urlVariable} to be the address of your endpoint, which is signed.`);
}

/** Runs with other variables: a definition reads them when it is imported, and the commands of the user must not. */
async function withVariables<T>(variables: Readonly<Record<string, string>>, run: () => Promise<T>): Promise<T> {
  const before = { ...process.env };
  Object.assign(process.env, variables);
  try {
    return await run();
  } finally {
    for (const name of Object.keys(variables)) Reflect.deleteProperty(process.env, name);
    Object.assign(process.env, before);
  }
}

/** Names CALLBACK_SECRET, if that is what a definition refuses. */
function explainSecret(error: unknown, expectation: string): unknown {
  const invalid = error as Partial<TransferCallbackError>;
  if (invalid.option === 'publicKeys') {
    return new UsageError(`Expected ${secretVariable} to be ${expectation}, got a key of another kind.`);
  }
  return isAboutSecret(invalid) ? new UsageError(describeInvalid(secretVariable, invalid)) : error;
}

/** Shows how to set the variable, if a definition in a file has no secret that it can use. */
export function adviseVariable(error: unknown): unknown {
  const { message, cause } = error as Error;
  if (!isAboutSecret(cause ?? {})) return error;
  return new UsageError(
    `${message} Write ${secretVariable}=… npx transfer-sandbox … if that is the variable which it reads.`,
  );
}

function isAboutSecret({ option }: Partial<TransferCallbackError>): boolean {
  return option === 'secret' || option === 'secrets';
}
