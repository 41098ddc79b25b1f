import type { PayoutService, Reading } from '../../../../src/core/payout-service.js';
import { parseJson } from '../../../../src/lib/text.js';

/** A parsed body. */
export interface Payload {
  readonly value: unknown;
  readonly isForm: boolean;
}

/** Parses JSON or a form. Returns `undefined` for any other string. */
export function parsePayload(body: string): Payload | undefined {
  const value = parseJson(body);
  if (value !== undefined) return { value, isForm: false };
  const text = body.trim();
  if (!/^[^\s=&{[]+=\S*$/.test(text)) return undefined;
  return { value: Object.fromEntries(new URLSearchParams(text)), isForm: true };
}

/** Reads a body by a definition. Returns `undefined` for a string that is neither JSON nor a form. */
export function readBody({ readCallback }: PayoutService, body: string): Reading | undefined {
  const payload = parsePayload(body);
  return payload && readCallback(payload.value);
}

/** Returns the state and the amount of a callback, for people; `undefined` for a body that is none. */
export function describeBody(service: PayoutService, body: string): string | undefined {
  const reading = readBody(service, body);
  if (reading?.kind !== 'callback') return undefined;
  const { amount, currency } = reading.fields;
  const money = [amount, currency].filter((each) => each !== undefined).join(' ');
  return money === '' ? reading.state : `${reading.state}  ${money}`;
}
