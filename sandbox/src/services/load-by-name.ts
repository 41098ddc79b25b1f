import { createPrivateKey, createPublicKey, randomUUID } from 'node:crypto';
import type { PayoutService } from '../../../src/core/payout-service.js';
import { invalidSecret } from '../../../src/lib/checks.js';
import { didYouMean } from '../../../src/lib/text.js';
import { TransferCallbackError } from '../../../src/lib/errors.js';
import type { SignWith } from '../attempt/signer.js';
import { namedServices, type NamedService, type ServiceName } from './named-services.js';

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

/** What a service is given as. */
export const expectedService = `Expected a service of your own, or the name of one: ${Object.keys(namedServices).join(', ')}.`;

/** Loads a definition by its name. `url` is the callback endpoint, which may be signed. Throws INVALID_ARGUMENT. */
export async function loadByName(name: string, url: string | undefined): Promise<Definition> {
  const named: NamedService | undefined = Object.hasOwn(namedServices, name)
    ? namedServices[name as ServiceName]
    : undefined;
  if (named === undefined) {
    const meant = didYouMean(name, Object.keys(namedServices));
    const advice = meant === undefined ? '' : ` Did you mean \`${meant}\`?`;
    throw new TransferCallbackError('INVALID_ARGUMENT', `${expectedService}${advice}`);
  }
  const expected = `${String(named.secret)} of ${name} that your endpoint has`;
  const variables = { [named.variable]: toProof(named, expected), ...toSignedUrl(named, url) };
  const known = loaded.get(name) ?? { variables, definition: importByName(name, named, variables, expected) };
  loaded.set(name, known);
  const changed = Object.keys(variables).find((each) => known.variables[each] !== variables[each]);
  if (changed === undefined) return known.definition;
  const given = changed.endsWith('URL') ? changed : secretVariable;
  throw new TransferCallbackError('INVALID_ARGUMENT', `Expected ${given} to stay the same for ${name} in one process.`);
}

type Variables = Readonly<Record<string, string>>;

/** A definition reads its variables once in a process. */
const loaded = new Map<string, { readonly variables: Variables; readonly definition: Promise<Definition> }>();

async function importByName(name: string, named: NamedService, variables: Variables, expected: string) {
  const [definition, payloads] = (await Promise.all([
    withVariables(variables, () => import(`../../../examples/services/${name}.ts`)).catch((error: unknown) => {
      throw explainSecret(error, expected);
    }),
    import(`../../../examples/services/payloads/${name}.json`),
  ])) as [Record<string, PayoutService>, { default: Payloads }];
  const service = definition[name];
  if (service === undefined) throw new Error(`${name}.ts does not export ${name}.`);
  const signWith = { secret: process.env[secretVariable], toOptions: named.toSignOptions };
  return { service, signWith, byName: { named, payloads: payloads.default } };
}

/** The definition needs a token. The right one is in the address. */
const unusedToken = randomUUID();

/** Returns what the definition verifies with: the secret itself, or the public key of a private one. */
function toProof({ secret: what, liveKey, isKeyPair }: NamedService, expected: string): string {
  if (what === undefined) return unusedToken;
  const secret = process.env[secretVariable];
  if (liveKey !== undefined && secret?.startsWith(liveKey) === true) {
    throw invalidVariable('a key for tests', `one that begins with ${liveKey}`);
  }
  const proof = isKeyPair === true ? findPublicKey(secret) : secret;
  if (proof !== undefined && proof !== '') return proof;
  if (secret !== undefined && secret !== '') {
    throw invalidVariable(expected, invalidSecret(secretVariable, expected, secret).got);
  }
  const example = `${secretVariable}=${isKeyPair === true ? '"$(cat test.pem)"' : '…'}`;
  throw invalidVariable(expected, 'nothing', ` Write ${example} before the command.`);
}

function invalidVariable(expected = '', got = '', advice = ''): TransferCallbackError {
  const message = `Expected the environment variable ${secretVariable} to be ${expected}, got ${got}.${advice}`;
  return new TransferCallbackError('INVALID_ARGUMENT', message);
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

function toSignedUrl({ urlVariable }: NamedService, url: string | undefined): Variables {
  if (urlVariable === undefined) return {};
  const given = process.env[urlVariable];
  const signed = given === undefined || given === '' ? url : given;
  if (signed !== undefined) return { [urlVariable]: signed };
  const expected = `Expected ${urlVariable} to be the address of your endpoint, which is signed.`;
  throw new TransferCallbackError('INVALID_ARGUMENT', expected);
}

/** Runs with other variables: a definition reads them when it is imported, and the commands of the user must not. */
async function withVariables<T>(variables: Variables, run: () => Promise<T>): Promise<T> {
  const before = { ...process.env };
  Object.assign(process.env, variables);
  try {
    return await run();
  } finally {
    for (const name of Object.keys(variables)) {
      if (before[name] === undefined) Reflect.deleteProperty(process.env, name);
      else process.env[name] = before[name];
    }
  }
}

/** Names CALLBACK_SECRET, if that is what a definition refuses. */
function explainSecret(error: unknown, expected: string): unknown {
  const invalid = error as Partial<TransferCallbackError>;
  if (invalid.option === 'publicKeys') return invalidVariable(expected, 'a key of another kind');
  return isAboutSecret(invalid) ? invalidVariable(invalid.expected, invalid.got) : error;
}

/** Whether an error is about the secret of a definition. */
export function isAboutSecret({ option }: Partial<TransferCallbackError>): boolean {
  return option === 'secret' || option === 'secrets';
}
