import { readFileSync } from 'node:fs';
import { UsageError } from '../../../../src/cli/arguments.js';
import { loadExports } from '../../../../src/cli/config-file.js';
import { messageOf } from '../../../../src/cli/terminal.js';
import type { PayoutService } from '../../../../src/core/payout-service.js';
import { lendPackage } from './lend-package.js';
import {
  expectedService,
  isAboutSecret,
  isName,
  loadByName,
  secretVariable,
  type Definition,
} from '../../services/load-by-name.js';
import type { Names } from '../../services/named-services.js';
import { parsePayload, type Payload } from './payload.js';
import { Sample } from './sample.js';
import { Service, type Samples, type Traits } from './service.js';

const statuses = { success: 'SUCCESS', failed: 'FAILED', reversed: 'REVERSED', pending: 'PENDING' } as const;
/** The samples of a service. */
export const kinds = Object.keys(statuses) as (keyof typeof statuses)[];

/** The options of a service that is not named. */
export const fileOptions = [...kinds, 'event-id', 'transfer-id'] as const;

/** The files of a service: its definition, and a sample of each callback. */
export interface ServiceFiles extends Partial<Readonly<Record<keyof typeof statuses, string | undefined>>> {
  /** A file, or the name of a definition in this package, which has samples. */
  readonly service: string;
  /** Paths of the values that are fresh with each event, and with each transfer. */
  readonly 'event-id'?: readonly string[] | undefined;
  readonly 'transfer-id'?: readonly string[] | undefined;
}

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

/** Throws UsageError, with all names, if `--service` is the last argument or before another option. */
export function requireServiceValue(args: readonly string[]): void {
  const at = args.indexOf('--service');
  if (at >= 0 && (args[at + 1] ?? '-').startsWith('-')) throw new UsageError(expectedService);
}

/** Loads a definition and its samples. `url` is the callback endpoint. Throws UsageError, and INVALID_ARGUMENT. */
export async function loadService(files: ServiceFiles, url: string | undefined): Promise<LoadedService> {
  const name = files.service;
  if (!isName(name)) requireSamples(files.success);
  const { service, signWith, byName } = await loadDefinition(name, url);
  if (byName === undefined) {
    if (service.meanings.has('FAILED')) requireSamples(files.failed);
    const names = { event: files['event-id'] ?? [], transfer: files['transfer-id'] ?? [] };
    const { samples, isForm } = readSamples(files, service, names);
    requireNames(names, Object.values(samples));
    return { service: new Service(service, samples, { isForm, signWith, names, isOwn: true }) };
  }
  // Some of its documents show no sample of a state that is not final.
  const wrong = fileOptions.find((option) => option !== 'pending' && files[option] !== undefined);
  if (wrong !== undefined) {
    throw new UsageError(`Expected --service to be a file beside --${wrong}: ${name} has its own samples.`);
  }
  const { named, payloads } = byName;
  const { source, readOn, ignored } = payloads;
  const names = { event: [], transfer: [], ...named.names };
  const { samples } = readSamples(files, service, names, payloads);
  const traits: Traits = { isForm: false, ...named, signWith, names, ignored };
  return { service: new Service(service, samples, traits), origin: { service: name, source, readOn } };
}

/** Loads a definition out of a file, or by its name. Throws UsageError. */
export async function loadDefinition(given: string, url: string | undefined): Promise<Definition> {
  if (isName(given)) return loadByName(given, url);
  return { service: await importDefinition(given), signWith: { secret: process.env[secretVariable] } };
}

function requireSamples(file: string | undefined): void {
  if (file !== undefined) return;
  throw new UsageError(
    'Expected --success and --failed beside --service, such as --success paid.json --failed failed.json: a sample of ' +
      'each. Without a state that is FAILED, --success is enough.',
  );
}

/** Returns the samples in the files, else `payloads` of the package. */
function readSamples(
  files: ServiceFiles,
  service: PayoutService,
  names: Names,
  payloads: Partial<Record<keyof typeof statuses, unknown>> = {},
): { readonly samples: Samples; readonly isForm: boolean } {
  const all = kinds.flatMap((kind) => {
    const [file, value, status] = [files[kind], payloads[kind], statuses[kind]];
    if (file === undefined && value === undefined) return [];
    const payload = file === undefined ? { value, isForm: false } : readSample(`--${kind}`, file);
    const sample = new Sample(file ?? `the sample of ${files.service}`, payload.value, { service, status, names });
    return [{ status, sample, ...payload }];
  });
  const samples: Partial<Samples> = Object.fromEntries(all.map(({ status, sample }) => [status, sample]));
  return { samples: samples as Samples, isForm: all.some(({ isForm }) => isForm) };
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

/** Shows how to set the variable, if a definition in a file has no secret that it can use. */
function adviseVariable(error: unknown): unknown {
  const { message, cause } = error as Error;
  if (!isAboutSecret(cause ?? {})) return error;
  return new UsageError(
    `${message} Write ${secretVariable}=… before the command if that is the variable which it reads.`,
  );
}

function isDefinition(value: unknown): value is PayoutService {
  return typeof (value as Partial<PayoutService> | null | undefined)?.readCallback === 'function';
}

/** Reads a sample, which is JSON or a form. Throws UsageError. */
function readSample(option: string, file: string): Payload {
  const payload = parsePayload(readText(option, file));
  if (typeof payload?.value === 'object' && payload.value !== null) return payload;
  throw new UsageError(`Expected ${option} to name a file with the JSON, or the form, of a callback.`);
}

function readText(option: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageError(`Expected ${option} to name a file that can be read, got ${messageOf(error)}.`);
  }
}
