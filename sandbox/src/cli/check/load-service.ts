import { readFileSync } from 'node:fs';
import { register } from 'node:module';
import { UsageError } from '../../../../src/cli/arguments.js';
import { loadExports } from '../../../../src/cli/config-file.js';
import type { PayoutService } from '../../../../src/core/payout-service.js';
import { parseJson } from '../../../../src/lib/text.js';
import { DefinedService } from './defined-service.js';
import { isName, loadByName } from './load-by-name.js';
import { Sample } from './sample.js';
import type { FinalStatus } from './service.js';
import { secretVariable } from './signers.js';

/** The files of a service: its definition, and a sample of each callback. */
export interface ServiceFiles {
  /** A file, or the name of a definition in this package, which has samples. */
  readonly service: string;
  readonly success: string | undefined;
  readonly failed: string | undefined;
  readonly reversed: string | undefined;
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

/** Loads a definition and its samples. `url` is the callback endpoint. Throws UsageError. */
export async function loadService(files: ServiceFiles, url: string | undefined): Promise<LoadedService> {
  return isName(files.service) ? loadNamed(files, url) : { service: await loadFiles(files) };
}

async function loadFiles({ service: file, success, failed, reversed }: ServiceFiles): Promise<DefinedService> {
  if (success === undefined || failed === undefined) {
    throw new UsageError('Expected --success and --failed beside --service: a sample of each callback.');
  }
  const service = await loadDefinition(file);
  const [paid, refused] = [readSample('--success', success), readSample('--failed', failed)];
  const givenBack = reversed === undefined ? undefined : readSample('--reversed', reversed);
  const samples = {
    SUCCESS: new Sample(success, paid.payload, { service, status: 'SUCCESS' }),
    FAILED: new Sample(failed, refused.payload, { service, status: 'FAILED' }),
    REVERSED: givenBack && new Sample(String(reversed), givenBack.payload, { service, status: 'REVERSED' }),
  };
  const signWith = { secret: process.env[secretVariable] };
  const whyNoReversal = 'The definition has no REVERSED.';
  return new DefinedService(service, samples, { isForm: paid.isForm, signWith, whyNoReversal });
}

async function loadNamed({ service: name, ...files }: ServiceFiles, url: string | undefined): Promise<LoadedService> {
  const { named, service, payloads } = await loadByName(name, url);
  if (Object.values(files).some((file) => file !== undefined)) {
    throw new UsageError(`Expected --service to be a file beside a sample: ${name} has samples of its own.`);
  }
  const { success, failed, reversed, source, readOn } = payloads;
  const toSample = (payload: unknown, status: FinalStatus): Sample =>
    new Sample(`the sample of ${name}`, payload, { service, status });
  const samples = {
    SUCCESS: toSample(success, 'SUCCESS'),
    FAILED: toSample(failed, 'FAILED'),
    REVERSED: reversed === undefined ? undefined : toSample(reversed, 'REVERSED'),
  };
  const signWith = { secret: process.env[secretVariable], toOptions: named.toSignOptions };
  const whyNoReversal = 'No document that was read shows a reversal.';
  const traits = { isForm: named.isForm === true, signWith, whyNoReversal };
  return { service: new DefinedService(service, samples, traits), origin: { service: name, source, readOn } };
}

async function loadDefinition(file: string): Promise<PayoutService> {
  registerOwnName();
  const all = Object.values(await loadExports(file));
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

/** Lets a file import `transfer-sandbox` where it is not installed: npx keeps it in a folder of its own. */
function registerOwnName(): void {
  const own = JSON.stringify(new URL('index.js', import.meta.url).href);
  const hook = `export async function resolve(name, context, next) {
    try {
      return await next(name, context);
    } catch (error) {
      if (name !== 'transfer-sandbox') throw error;
      return { url: ${own}, shortCircuit: true };
    }
  }`;
  register(`data:text/javascript,${encodeURIComponent(hook)}`);
}

/** Reads a sample, which is JSON or a form. Throws UsageError. */
function readSample(option: string, file: string): { readonly payload: unknown; readonly isForm: boolean } {
  const text = readText(option, file);
  const payload = parseJson(text);
  if (typeof payload === 'object' && payload !== null) return { payload, isForm: false };
  if (payload !== undefined || !/^[^\s=&{[]+=\S*$/.test(text)) {
    throw new UsageError(`Expected ${option} to name a file with the JSON, or the form, of a callback.`);
  }
  return { payload: Object.fromEntries(new URLSearchParams(text)), isForm: true };
}

function readText(option: string, file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new UsageError(`Expected ${option} to name a file that can be read, got ${String(code)}.`);
  }
}
