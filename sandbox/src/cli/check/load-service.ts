import { readFileSync } from 'node:fs';
import { UsageError } from '../../../../src/cli/arguments.js';
import { loadExports } from '../../../../src/cli/config-file.js';
import { messageOf } from '../../../../src/cli/terminal.js';
import type { PayoutService } from '../../../../src/core/payout-service.js';
import type { SignWith } from '../../attempt/signer.js';
import { DefinedService } from './defined-service.js';
import { lendPackage } from './lend-package.js';
import { adviseVariable, isName, loadByName, secretVariable, type LoadedByName } from './load-by-name.js';
import { parsePayload, type Payload } from './payload.js';
import { Sample } from './sample.js';
import type { FinalStatus } from './service.js';

/** The files of a service: its definition, and a sample of each callback. */
export interface ServiceFiles {
  /** A file, or the name of a definition in this package, which has samples. */
  readonly service: string;
  readonly success?: string | undefined;
  readonly failed?: string | undefined;
  readonly reversed?: string | undefined;
}

/** A definition in this package, and where it comes from. */
export interface Origin {
  readonly service: string;
  readonly source: string;
  readonly readOn: string;
}

/** A service, and where its definition comes from; `undefined` for a definition of the user. */
export interface LoadedService {
  readonly service: DefinedService;
  readonly origin?: Origin;
}

/** A sample in a file, under the option of its status. */
interface GivenSample extends Payload {
  readonly option: string;
  readonly file: string;
  readonly status: FinalStatus;
}

/** A definition, and what its verifiers sign with. */
export interface Definition {
  readonly service: PayoutService;
  readonly signWith: SignWith;
  /** Set for a definition in this package. */
  readonly byName?: LoadedByName;
}

/** Loads a definition and its samples. `url` is the callback endpoint. Throws UsageError, and INVALID_ARGUMENT. */
export async function loadService(files: ServiceFiles, url: string | undefined): Promise<LoadedService> {
  const { service, success, failed } = files;
  if (!isName(service) && (success === undefined || failed === undefined)) {
    throw new UsageError(
      'Expected --success and --failed beside --service, such as --success paid.json --failed failed.json: a sample of each.',
    );
  }
  const definition = await loadDefinition(service, url);
  return definition.byName === undefined
    ? withFiles(definition, files)
    : withOwnSamples(definition.byName, definition, files);
}

/** Loads a definition out of a file, or by its name. Throws UsageError. */
export async function loadDefinition(given: string, url: string | undefined): Promise<Definition> {
  const secret = process.env[secretVariable];
  if (!isName(given)) return { service: await importDefinition(given), signWith: { secret } };
  const byName = await loadByName(given, url);
  return { service: byName.service, signWith: { secret, toOptions: byName.named.toSignOptions }, byName };
}

function withFiles(
  { service, signWith }: Definition,
  { success = '', failed = '', reversed }: ServiceFiles,
): LoadedService {
  const paid = readSample('--success', success, 'SUCCESS');
  const refused = readSample('--failed', failed, 'FAILED');
  const givenBack = reversed === undefined ? undefined : readSample('--reversed', reversed, 'REVERSED');
  refuseSwapped(service, givenBack === undefined ? [paid, refused] : [paid, refused, givenBack]);
  const toSample = ({ file, value, status }: GivenSample): Sample => new Sample(file, value, { service, status });
  const samples = { SUCCESS: toSample(paid), FAILED: toSample(refused), REVERSED: givenBack && toSample(givenBack) };
  const whyNoReversal = 'The definition has no REVERSED.';
  return { service: new DefinedService(service, samples, { isForm: paid.isForm, signWith, whyNoReversal }) };
}

function withOwnSamples(
  { named, payloads }: LoadedByName,
  { service, signWith }: Definition,
  { service: name, success, failed, reversed }: ServiceFiles,
): LoadedService {
  if ([success, failed, reversed].some((file) => file !== undefined)) {
    throw new UsageError(`Expected --service to be a file beside a sample: ${name} has its own samples.`);
  }
  const toSample = (payload: unknown, status: FinalStatus): Sample =>
    new Sample(`the sample of ${name}`, payload, { service, status });
  const samples = {
    SUCCESS: toSample(payloads.success, 'SUCCESS'),
    FAILED: toSample(payloads.failed, 'FAILED'),
    REVERSED: payloads.reversed === undefined ? undefined : toSample(payloads.reversed, 'REVERSED'),
  };
  const whyNoReversal = 'No document that was read shows a reversal.';
  const { source, readOn } = payloads;
  return {
    service: new DefinedService(service, samples, { isForm: named.isForm === true, signWith, whyNoReversal }),
    origin: { service: name, source, readOn },
  };
}

/** Throws UsageError if the samples would be right under each other's options. */
function refuseSwapped({ readCallback }: PayoutService, samples: readonly GivenSample[]): void {
  const all = samples.map((sample) => {
    const reading = readCallback(sample.value);
    return { ...sample, found: reading.kind === 'callback' ? reading.fields.status : undefined };
  });
  const wrong = all.find(({ status, found }) => found !== status);
  if (wrong === undefined || !all.every(({ status }) => all.some(({ found }) => found === status))) return;
  const swapped = all.map(
    ({ option, status }) => `${option} ${String(all.find(({ found }) => found === status)?.file)}`,
  );
  throw new UsageError(
    `Expected ${wrong.option} to be a callback that is ${wrong.status}, got one that is ${String(wrong.found)}. ` +
      `Swap them: ${swapped.join(' ')}.`,
  );
}

async function importDefinition(file: string): Promise<PayoutService> {
  lendPackage();
  const exported = await loadExports(file).catch((error: unknown) => {
    throw adviseVariable(error);
  });
  const all = Object.values(exported);
  const definitions = new Set(all.filter((each): each is PayoutService => isDefinition(each)));
  const [service] = definitions;
  if (service !== undefined && definitions.size === 1) return service;
  throw new UsageError(
    `Expected ${file} to export one service, made by \`defineService\`, got ${definitions.size || 'none'}.`,
  );
}

function isDefinition(value: unknown): boolean {
  return typeof (value as Partial<PayoutService> | null | undefined)?.readCallback === 'function';
}

/** Reads a sample, which is JSON or a form. Throws UsageError. */
function readSample(option: string, file: string, status: FinalStatus): GivenSample {
  const payload = parsePayload(readText(option, file));
  if (typeof payload?.value === 'object' && payload.value !== null) return { option, file, status, ...payload };
  throw new UsageError(`Expected ${option} to name a file with the JSON, or the form, of a callback.`);
}

function readText(option: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageError(`Expected ${option} to name a file that can be read, got ${messageOf(error)}.`);
  }
}
