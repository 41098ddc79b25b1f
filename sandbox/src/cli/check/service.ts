import { transferSucceeded } from '../../../../src/testing/fixtures.js';
import { createTransfer } from '../create-transfer.js';
import type { TransferSandbox } from '../../index.js';
import { undocumentedBodies, unbookableBodies, type InvalidBody } from './bodies.js';
import type { NamedTransfer } from './commands.js';

export type FinalStatus = NamedTransfer['status'];

/** A transfer and the body of its callback. */
export interface Announced extends NamedTransfer {
  readonly body: string;
}

/** Why rows cannot be played for a service, by their names. */
export type Gaps = Readonly<Record<string, string>>;

/** What `check` sends in the name of a service. The rows know no more of it. */
export interface CheckedService {
  readonly contentType: string;
  /** The rows that cannot be played, and why. */
  readonly gaps: Gaps;
  /** Whether each callback has a signature, without which the endpoint must not believe it. */
  readonly isSigned: boolean;
  /** Why a stranger proves nothing without an address of his own; `undefined` if nothing is known of that. */
  readonly strangerGap?: string | undefined;
  /** Returns the headers that prove the sender of a body. */
  sign(body: string | Uint8Array): Readonly<Record<string, string>>;
  /** Creates a transfer that has ended. An app that asks the service finds it there. */
  create(name: string, status: FinalStatus): Promise<Announced>;
  /** Returns the callback of a success under the id of a transfer that has failed. */
  contradict(transfer: Announced): string;
  /** Returns the callback with another amount under the same id. */
  changeAmount(transfer: Announced): string;
  /** Returns a body that is cut short. */
  cutShort(transfer: Announced): string;
  /** Returns a callback that looks true. The service knows no such transfer. */
  forge(): Announced;
  /** Bodies that the service's document excludes, and no app can book rightly. */
  unbookable(): readonly InvalidBody[];
  /** Bodies with a field that is not as documented, which an app need not read. */
  undocumented(): readonly InvalidBody[];
  /** What only a service that is defined has. `undefined` for the documented one. */
  readonly defined?: DefinedRows | undefined;
}

/** What the rows send that are played for a defined service only. A row without it is among the gaps. */
export interface DefinedRows {
  /** Returns the callback that takes a transfer back. */
  reverse(transfer: Announced): string;
  /** Returns a callback with a state that the definition does not have. */
  makeUnknown(): Announced;
  /** Returns an event that the definition ignores, with the ids of a transfer as far as it has any. */
  makeForeign(): Announced;
}

interface Callback {
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The documented service, as the sandbox imitates it. */
export class DocumentedService implements CheckedService {
  readonly contentType = 'application/json';
  readonly gaps = {};
  readonly isSigned = false;
  readonly unbookable = unbookableBodies;
  readonly undocumented = undocumentedBodies;
  readonly #sandbox: TransferSandbox;

  constructor(sandbox: TransferSandbox) {
    this.#sandbox = sandbox;
  }

  async create(name: string, status: FinalStatus): Promise<Announced> {
    const externalId = `check-${name}-${crypto.randomUUID()}`;
    this.#sandbox.setScenario(externalId, status === 'FAILED' ? 'failed' : 'success');
    await createTransfer(this.#sandbox, { externalId });
    await this.#sandbox.advance(0);
    const { apiKey, apiSecret } = this.#sandbox.keys.valid;
    const response = await fetch(`${this.#sandbox.baseUrl}/transactions/${externalId}`, {
      headers: { 'x-api-key': apiKey, 'x-api-secret': apiSecret },
    });
    const { data } = (await response.json()) as { data: { id: string; amount: number; currency: string } };
    const { id, amount, currency } = data;
    const event = status === 'FAILED' ? 'transfer.failed' : 'transfer.success';
    return { externalId, status, id, amount, currency, body: JSON.stringify({ event, data }) };
  }

  sign(): Readonly<Record<string, string>> {
    return {};
  }

  cutShort({ body }: Announced): string {
    return body.slice(0, body.length / 2);
  }

  contradict({ body }: Announced): string {
    const { data } = JSON.parse(body) as Callback;
    return JSON.stringify({ event: 'transfer.success', data: { ...data, status: 'SUCCESS', failureReason: null } });
  }

  changeAmount({ body, amount }: Announced): string {
    const { event, data } = JSON.parse(body) as Callback;
    return JSON.stringify({ event, data: { ...data, amount: Number(amount) + 1 } });
  }

  forge(): Announced {
    const callback = transferSucceeded();
    const { id, externalId, amount, currency } = callback.data;
    return { externalId, status: 'SUCCESS', id, amount, currency, body: JSON.stringify(callback) };
  }
}
