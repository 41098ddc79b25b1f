import { readFileSync } from 'node:fs';
import { UsageError } from '../../../../src/cli/arguments.js';
import { loadExports } from '../../../../src/cli/config-file.js';
import type { PayoutService } from '../../../../src/core/payout-service.js';
import { DefinedService } from './defined-service.js';
import { lendPackage } from './lend-package.js';
import { parsePayload, type Payload } from './payload.js';
import { Sample } from './sample.js';
import type { FinalStatus } from './service.js';

/** The files of a service: its definition, and a sample of each callback. */
export interface ServiceFiles {
  readonly service: string;
  readonly success?: string | undefined;
  readonly failed?: string | undefined;
  readonly reversed?: string | undefined;
}

/** Loads a definition and its samples. Throws UsageError. */
export async function loadService({ service: file, success, failed, reversed }: ServiceFiles): Promise<DefinedService> {
  if (success === undefined || failed === undefined) {
    throw new UsageError('Expected --success and --failed beside --service: a sample of each callback.');
  }
  const service = await loadDefinition(file);
  const [paid, refused] = [readSample('--success', success), readSample('--failed', failed)];
  const givenBack = reversed === undefined ? undefined : readSample('--reversed', reversed);
  const toSample = (name: string, payload: unknown, status: FinalStatus): Sample =>
    new Sample(name, payload, { service, status });
  const samples = {
    SUCCESS: toSample(success, paid.value, 'SUCCESS'),
    FAILED: toSample(failed, refused.value, 'FAILED'),
    REVERSED: givenBack && toSample(String(reversed), givenBack.value, 'REVERSED'),
  };
  return new DefinedService(service, samples, { isForm: paid.isForm });
}

/** Loads the definition of a service. Throws UsageError. */
export async function loadDefinition(file: string): Promise<PayoutService> {
  lendPackage();
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
    const { code } = error as NodeJS.ErrnoException;
    throw new UsageError(`Expected ${option} to name a file that can be read, got ${String(code)}.`);
  }
}
