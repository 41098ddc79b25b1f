import { readFileSync } from 'node:fs';
import { UsageError } from '../../../../src/cli/arguments.js';
import { loadExports } from '../../../../src/cli/config-file.js';
import { messageOf } from '../../../../src/cli/terminal.js';
import type { PayoutService } from '../../../../src/core/payout-service.js';
import type { SignWith } from '../../attempt/signer.js';
import { lendPackage } from './lend-package.js';
import { adviseVariable, isName, loadByName, secretVariable, type LoadedByName } from './load-by-name.js';
import { parsePayload, type Payload } from './payload.js';
import { Sample, type Names } from './sample.js';
import { Service, type Samples } from './service.js';

/** The files of a service: its definition, and a sample of each callback. */
export interface ServiceFiles {
  /** A file, or the name of a definition in this package, which has samples. */
  readonly service: string;
  readonly success?: string | undefined;
  readonly failed?: string | undefined;
  readonly reversed?: string | undefined;
  readonly pending?: string | undefined;
  /** Paths of the values that are fresh with each event, and with each transfer. */
  readonly 'event-id'?: readonly string[] | undefined;
  readonly 'transfer-id'?: readonly string[] | undefined;
}

/** The options that a service needs which is not named. */
export const fileOptions = ['success', 'failed', 'reversed', 'pending', 'event-id', 'transfer-id'] as const;

/** A definition in this package, and where it comes from. */
export interface Origin {
  readonly service: string;
  readonly source: string;
  readonly readOn: string;
}

/** A service, and where its definition comes from; `undefined` for a definition of the user. */
export interface LoadedService {
  readonly service: Service;
  readonly origin?: Origin;
}

/** A sample, and the option and the file that it comes from. */
interface GivenSample extends Payload {
  readonly option: string;
  readonly file: string;
  readonly status: keyof Samples;
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
  if (!isName(files.service)) requireSamples(files, files.success === undefined);
  const definition = await loadDefinition(files.service, url);
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

function withFiles({ service, signWith }: Definition, files: ServiceFiles): LoadedService {
  requireSamples(files, service.meanings.has('FAILED'));
  const names: Names = { event: files['event-id'] ?? [], transfer: files['transfer-id'] ?? [] };
  const given = kinds.flatMap((kind) => {
    const file = files[kind];
    return file === undefined ? [] : [readSample(`--${kind}`, file, statuses[kind])];
  });
  refuseSwapped(service, given);
  const samples = toSamples(given, service, names);
  requireNames(names, Object.values(samples));
  const isForm = given.some((sample) => sample.isForm);
  const whyNoReversal = 'The definition has no REVERSED.';
  return { service: new Service(service, samples, { isForm, signWith, names, whyNoReversal, isOwn: true }) };
}

const statuses = { success: 'SUCCESS', failed: 'FAILED', reversed: 'REVERSED', pending: 'PENDING' } as const;
const kinds = Object.keys(statuses) as (keyof typeof statuses)[];

function toSamples(given: readonly GivenSample[], service: PayoutService, names: Names): Samples {
  const all = given.map(({ file, value, status }): [string, Sample] => [
    status,
    new Sample(file, value, { service, status, names }),
  ]);
  return Object.fromEntries(all) as unknown as Samples;
}

/** Throws UsageError unless there is a sample of each outcome. */
function requireSamples({ success, failed }: Pick<ServiceFiles, 'success' | 'failed'>, isFailing: boolean): void {
  if (success !== undefined && (!isFailing || failed !== undefined)) return;
  throw new UsageError(
    isFailing
      ? 'Expected --success and --failed beside --service, such as --success paid.json --failed failed.json: a sample of each.'
      : 'Expected --success beside --service, such as --success paid.json: a sample.',
  );
}

/** Throws UsageError if a name is in no sample. */
function requireNames({ event, transfer }: Names, samples: readonly (Sample | undefined)[]): void {
  const isKnown = (name: string): boolean =>
    /^header:[\w-]+$/.test(name) || samples.some((sample) => sample?.has(name) === true);
  const unknown = [...event, ...transfer].find((name) => !isKnown(name));
  if (unknown === undefined) return;
  const option = event.includes(unknown) ? '--event-id' : '--transfer-id';
  throw new UsageError(
    `Expected ${option} to be the path of a value in the samples, such as data.id, or header:NAME, got ${unknown}.`,
  );
}

function withOwnSamples(
  { named, payloads }: LoadedByName,
  { service, signWith }: Definition,
  files: ServiceFiles,
): LoadedService {
  const { service: name, pending } = files;
  // Some of its documents show no sample of a state that is not final.
  const wrong = fileOptions.find((option) => option !== 'pending' && files[option] !== undefined);
  if (wrong !== undefined) {
    throw new UsageError(`Expected --service to be a file beside --${wrong}: ${name} has its own samples.`);
  }
  const { names: own, isForm = false, ...traits } = named;
  const names: Names = { event: [], transfer: [], ...own };
  const given = kinds.flatMap((kind): GivenSample[] => {
    const [value, status] = [payloads[kind], statuses[kind]];
    if (kind === 'pending' && pending !== undefined) return [readSample('--pending', pending, status)];
    return value === undefined ? [] : [{ option: kind, file: `the sample of ${name}`, status, value, isForm }];
  });
  const { source, readOn, ignored } = payloads;
  const whyNoReversal = 'No document that was read shows a reversal.';
  return {
    service: new Service(service, toSamples(given, service, names), {
      ...traits,
      isForm,
      signWith,
      names,
      ignored,
      whyNoReversal,
    }),
    origin: { service: name, source, readOn },
  };
}

/** Throws UsageError if the samples would be right under each other's options. */
function refuseSwapped({ readCallback }: PayoutService, samples: readonly GivenSample[]): void {
  const all = samples.map((sample) => {
    const reading = readCallback(sample.value);
    const found =
      reading.kind === 'callback' ? reading.fields.status : reading.kind === 'pending' ? 'PENDING' : undefined;
    return { ...sample, found };
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
  const definitions = new Set(Object.values(exported).filter(isDefinition));
  const [service] = definitions;
  if (service !== undefined && definitions.size === 1) return service;
  throw new UsageError(
    `Expected ${file} to export one service, made by \`defineService\`, got ${definitions.size || 'none'}.`,
  );
}

function isDefinition(value: unknown): value is PayoutService {
  return typeof (value as Partial<PayoutService> | null | undefined)?.readCallback === 'function';
}

/** Reads a sample, which is JSON or a form. Throws UsageError. */
function readSample(option: string, file: string, status: GivenSample['status']): GivenSample {
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
