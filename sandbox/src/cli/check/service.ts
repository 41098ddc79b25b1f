import { toContentType } from '../../attempt/attempt.js';
import { Signer, type SignWith } from '../../attempt/signer.js';
import type { DocumentedTraits, Names } from '../../services/named-services.js';
import { UsageError } from '../../../../src/cli/arguments.js';
import type { PayoutService } from '../../../../src/core/payout-service.js';
import type { FinalStatus, Transfer } from './commands.js';
import { describeBody, readBody } from './payload.js';
import type { Ids, Sample } from './sample.js';
import { getLeaf, listLeaves } from './values.js';

/** What a service sends about a transfer. The last four are not events of any service: `check` makes them. */
export type Event =
  | ('success' | 'failed' | 'reversed' | 'pending' | 'foreign')
  | ('unknown' | 'other amount' | 'other spelling' | 'list');

type Sampled = 'FAILED' | 'REVERSED' | 'PENDING';

/** The samples of a service, by the status of their transfer. Some services report no failures. */
export type Samples = Readonly<Record<'SUCCESS', Sample> & Partial<Record<Sampled, Sample>>>;

/** A body that is not as documented. */
export interface InvalidBody {
  readonly title: string;
  /** What it would be about without its fault, with this body. The service knows no such transfer. */
  readonly transfer: Transfer;
  /** Whether it is right to book it once, because an app can find its payout and the outcome without what is wrong. */
  readonly isBookable: boolean;
}

/** What is not in the definition and the samples of a service. */
export interface Traits extends DocumentedTraits {
  readonly isForm: boolean;
  readonly signWith: SignWith;
  readonly names: Names;
  /** An event that the definition ignores, as the documentation shows it. */
  readonly ignored?: unknown;
  /** Set for a definition of the user, whose samples may have other ids than those that `read` reads. */
  readonly isOwn?: true;
  /** Set for the documented service: rows that its document excludes are left out, and its Content-Type is known. */
  readonly isDocumented?: true;
  /** Makes the service know a transfer, and resolves with the id that it has there. */
  readonly register?: (externalId: string, status: FinalStatus) => Promise<string>;
  /** Bodies with a field that is not as documented, which an app need not read. */
  readonly undocumented?: () => readonly InvalidBody[];
}

/** Why something cannot be sent for a service. */
type Gaps = Readonly<Record<string, string | undefined>>;

const signsNothing =
  'The service signs nothing, so its callback proves nothing: use `confirm` or a secret path, and give --forged.';
const signsElsewhere =
  'This check cannot sign for this service: set the environment variable CALLBACK_SECRET, or give --forged.';

/** Returns the payload of an event, or its body; `undefined` if the service has no such event. */
type Make = (ids: Ids) => unknown;

const isOfForms = 'Its callbacks are forms.';

/** A service by its definition: what it sends is made of samples, with fresh ids. */
export class Service {
  readonly traits: Traits;
  readonly contentType: string;
  readonly signer: Signer;
  readonly gaps: Gaps;
  /** Names of values that an app may know a transfer by, and that are the same in every transfer. */
  readonly lookalikes: readonly string[];
  readonly #service: PayoutService;
  readonly #samples: Samples;
  /** How each event is made, and why it may not be. */
  readonly #events: Readonly<Record<Event, readonly [make: Make, why: string]>>;

  /** Throws UsageError if `read` returns another transfer after the ids of a sample were replaced. */
  constructor(service: PayoutService, samples: Samples, traits: Traits) {
    this.traits = traits;
    this.#service = service;
    this.#samples = samples;
    this.contentType = toContentType(traits.isForm);
    this.signer = new Signer(service.verify, this.#write(samples.SUCCESS.payload), traits.signWith);
    const isNamed = traits.names.event.length + traits.names.transfer.length > 0;
    this.lookalikes = isNamed || traits.isOwn !== true ? [] : samples.SUCCESS.findLookalikes();
    this.#events = this.#listEvents();
    this.gaps = this.#findGaps();
  }

  /** Returns a transfer that the service does not know, whose first callback is this event. */
  invent(name: string, event: Event = 'success'): Transfer {
    return this.announce(event === 'failed' ? 'FAILED' : 'SUCCESS', this.toFreshIds(`check-${name}`), event);
  }

  /** Resolves with a transfer that the service knows. */
  async create(name: string, event: Event): Promise<Transfer> {
    const transfer = this.invent(name, event);
    const id = await this.traits.register?.(transfer.externalId, transfer.status);
    return id === undefined ? transfer : this.announce(transfer.status, { ...transfer, id }, event);
  }

  /** Returns ids that no other transfer has. Both outcomes of a transfer have them, in the form of one sample. */
  toFreshIds(name: string, externalId?: string): Ids {
    return this.#samples.SUCCESS.toFreshIds(name, externalId);
  }

  /** Returns a transfer with these ids, and the body of its callback. */
  announce(
    status: FinalStatus,
    { id, externalId }: Ids,
    event: Event = status === 'FAILED' ? 'failed' : 'success',
  ): Transfer {
    const { amount, currency } = (this.#samples[status] ?? this.#samples.SUCCESS).facts;
    return { id, externalId, status, amount, currency, body: this.toBody(event, { id, externalId }) };
  }

  /** Returns the body of an event. Each is another event: a copy has the same body. */
  toBody(event: Event, ids: Ids): string {
    const [make, why] = this.#events[event];
    const payload = make(ids);
    if (payload === undefined) throw new UsageError(why);
    return typeof payload === 'string' ? payload : this.#write(payload);
  }

  /** Whether a state that the definition does not have is ignored by it. */
  get ignoresUnknown(): boolean {
    const payload = this.#makeUnknown(this.#samples.SUCCESS.payload);
    return payload !== undefined && this.#service.readCallback(payload).kind === 'ignored';
  }

  /** Returns the final status that a body reports; `undefined` if it reports none. */
  findStatus(body: string): string | undefined {
    const reading = readBody(this.#service, body);
    return reading?.kind === 'callback' ? reading.fields.status : undefined;
  }

  /** Returns the state and the amount of a callback, for people. */
  describe(body: string): string | undefined {
    return describeBody(this.#service, body);
  }

  /** Returns a body that is cut short. Half a form is a form: without its state it is not whole. */
  cutShort({ body, ...ids }: Transfer): string {
    if (!this.traits.isForm) return body.slice(0, body.length / 2);
    const { SUCCESS: sample } = this.#samples;
    return this.#write(sample.withoutState(sample.make(ids)) ?? {});
  }

  /** Bodies that the definition refuses, and that can be signed. Without a signature all would be refused for that. */
  unbookable(): readonly InvalidBody[] {
    const { SUCCESS: sample } = this.#samples;
    const toBody = (title: string, isBookable: boolean, write: (ids: Ids) => string): InvalidBody => {
      const transfer = this.invent('unbookable');
      return { title, isBookable, transfer: { ...transfer, body: write(transfer) } };
    };
    const texts = { 'an empty body': '', 'a body that is not JSON': 'state=success', null: 'null', '{}': '{}' };
    const written = Object.entries(texts).filter(([, body]) => body === '' || !this.traits.isForm);
    return [
      ...sample.listIncomplete(sample.payload).map(([title], index) => {
        return toBody(title, true, (ids) => this.#write(sample.listIncomplete(sample.make(ids))[index]?.[1]));
      }),
      ...written
        .filter(([, body]) => readBody(this.#service, body)?.kind !== 'ignored')
        .map(([title, body]) => toBody(title, false, () => body)),
    ].filter(({ transfer: { body } }) => !this.signer.fails(body));
  }

  #listEvents(): Readonly<Record<Event, readonly [make: Make, why: string]>> {
    const { SUCCESS: sample, FAILED, REVERSED, PENDING } = this.#samples;
    const { meanings } = this.#service;
    const { isOwn, isForm } = this.traits;
    const noReversal = isOwn ? 'The definition has no REVERSED.' : 'No document that was read shows a reversal.';
    const whyNoReversal = meanings.has('REVERSED') ? 'Give --reversed, a sample of a reversal.' : noReversal;
    const whyNoPending = meanings.has('PENDING')
      ? 'Give --pending, a sample of one.'
      : 'The definition has no PENDING.';
    return {
      success: [(ids) => sample.make(ids), ''],
      failed: [(ids) => FAILED?.make(ids), 'The definition has no FAILED.'],
      reversed: [(ids) => REVERSED?.make(ids), whyNoReversal],
      pending: [(ids) => PENDING?.make(ids), whyNoPending],
      unknown: [(ids) => this.#makeUnknown(sample.make(ids)), 'Every value is a state of the definition.'],
      foreign: [(ids) => this.#foreign ?? sample.makeForeign(sample.make(ids)), 'The definition ignores no event.'],
      'other amount': [(ids) => sample.changeAmount(sample.make(ids)), 'The definition reads no amount.'],
      'other spelling': [(ids) => (isForm ? undefined : sample.spell(sample.make(ids))), isOfForms],
      list: [(ids) => (isForm ? undefined : [sample.make(this.toFreshIds('check-list')), sample.make(ids)]), isOfForms],
    };
  }

  #makeUnknown(payload: unknown): unknown {
    const { SUCCESS: sample, FAILED, REVERSED } = this.#samples;
    return sample.makeUnknown(payload, (FAILED ?? REVERSED)?.payload);
  }

  /** The documented event that is ignored, unless it has the name of a state. */
  get #foreign(): unknown {
    const { ignored } = this.traits;
    const states = Object.values(this.#samples).map((sample?: Sample) => sample?.facts.state);
    const isState = listLeaves(ignored).some((leaf) => states.includes(String(getLeaf(ignored, leaf))));
    return isState ? undefined : ignored;
  }

  #write(payload: unknown): string {
    return this.traits.isForm
      ? new URLSearchParams(payload as Record<string, string>).toString()
      : JSON.stringify(payload);
  }

  #findGaps(): Gaps {
    const ids = this.toFreshIds('check');
    const events = Object.entries(this.#events).filter(([, [make]]) => make(ids) === undefined);
    const { isDocumented, undocumented } = this.traits;
    return {
      ...Object.fromEntries(events.map(([event, [, why]]) => [event, why])),
      ...(isDocumented !== true && { 'text/plain': 'The definition does not tell what comes under another type.' }),
      ...(undocumented === undefined && {
        undocumented: 'The definition tells nothing of fields that it does not read.',
      }),
      forged: this.signer.isMissing() ? signsElsewhere : signsNothing,
    };
  }
}
