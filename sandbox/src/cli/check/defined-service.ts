import { toContentType } from '../../attempt/attempt.js';
import type { AttemptHeaders } from '../../attempt/headers.js';
import { Signer, type SignWith } from '../../attempt/signer.js';
import type { PayoutService } from '../../../../src/core/payout-service.js';
import type { InvalidBody } from './bodies.js';
import { describeBody, readBody } from './payload.js';
import type { Ids, Sample } from './sample.js';
import type { Announced, CheckedService, DefinedRows, FinalStatus, Gaps } from './service.js';

/** The samples of a service, by the status of their transfer. */
export interface Samples {
  readonly SUCCESS: Sample;
  readonly FAILED: Sample;
  readonly REVERSED: Sample | undefined;
}

/** What is not in the definition and the samples of a service. */
export interface Traits {
  readonly isForm: boolean;
  readonly signWith: SignWith;
  /** Why there is no reversal, if no state is REVERSED. */
  readonly whyNoReversal: string;
}

const signsNothing =
  'The service signs nothing, so its callback proves nothing: use `confirm` or a secret path, and give --stranger.';
const signsElsewhere =
  'This check cannot sign for this service: set the environment variable CALLBACK_SECRET, or give --stranger.';

/** A service by its definition: what it sends is made of samples, with fresh ids. */
export class DefinedService implements CheckedService {
  readonly contentType: string;
  /** Whether its callbacks are forms, and no JSON. */
  readonly isForm: boolean;
  readonly gaps: Gaps;
  readonly isSigned: boolean;
  readonly strangerGap: string;
  readonly defined: DefinedRows;
  readonly #service: PayoutService;
  readonly #samples: Samples;
  readonly #signer: Signer;

  constructor(service: PayoutService, samples: Samples, { isForm, signWith, whyNoReversal }: Traits) {
    this.#service = service;
    this.#samples = samples;
    this.isForm = isForm;
    this.contentType = toContentType(isForm);
    this.#signer = new Signer(service.verify, this.#write(samples.SUCCESS.payload), signWith);
    this.isSigned = this.#signer.canSign;
    this.strangerGap = this.#signer.isMissing() ? signsElsewhere : signsNothing;
    this.gaps = this.#findGaps(whyNoReversal);
    this.defined = {
      reverse: (transfer) => this.#write(this.#make('REVERSED', transfer)),
      makeUnknown: () => this.#announce('unknown-state', (payload) => samples.SUCCESS.makeUnknown(payload)),
      makeForeign: () => this.#announce('foreign-event', (payload) => samples.SUCCESS.makeForeign(payload)),
    };
  }

  /** Whether callbacks with these headers would come without their signature. */
  isSignatureMissing(given: AttemptHeaders): boolean {
    return this.#signer.isMissing(given);
  }

  sign(body: string | Uint8Array): Readonly<Record<string, string>> {
    return this.#signer.sign(body);
  }

  create(name: string, status: FinalStatus): Promise<Announced> {
    return Promise.resolve(this.announce(status, this.toFreshIds(`check-${name}`)));
  }

  /** Returns ids that no other transfer has. Both outcomes of a transfer have them, in the form of one sample. */
  toFreshIds(name: string, externalId?: string): Ids {
    return this.#samples.SUCCESS.toFreshIds(name, externalId);
  }

  /** Returns a transfer with these ids, and the body of its callback. Throws UsageError if `read` returns others. */
  announce(status: FinalStatus, ids: Ids): Announced {
    const { amount, currency } = (this.#samples[status] ?? this.#samples.SUCCESS).money;
    return { ...ids, status, amount, currency, body: this.#write(this.#make(status, ids)) };
  }

  /** Returns the final status that a body announces; `undefined` if it announces none. */
  findStatus(body: string): string | undefined {
    const reading = readBody(this.#service, body);
    return reading?.kind === 'callback' ? reading.fields.status : undefined;
  }

  /** Returns the state and the amount of a callback, for people. */
  describe(body: string): string | undefined {
    return describeBody(this.#service, body);
  }

  contradict(transfer: Announced): string {
    return this.#write(this.#make('SUCCESS', transfer));
  }

  changeAmount(transfer: Announced): string {
    return this.#write(this.#samples.SUCCESS.changeAmount(this.#make('SUCCESS', transfer)));
  }

  cutShort(transfer: Announced): string {
    if (!this.isForm) return transfer.body.slice(0, transfer.body.length / 2);
    // Half a form is a form. Without its state it is not whole.
    return this.#write(this.#samples.SUCCESS.withoutState(this.#make('SUCCESS', transfer)) ?? {});
  }

  forge(): Announced {
    return this.#announce('stranger', (payload) => payload);
  }

  unbookable(): readonly InvalidBody[] {
    const { SUCCESS: sample } = this.#samples;
    const all: readonly [title: string, isBookable: boolean, toBody: (payload: unknown) => unknown][] = [
      ['the id is missing', true, (payload) => sample.withoutId(payload, 'id')],
      [
        'the own id is missing',
        true,
        (payload) => (sample.hasOneId ? undefined : sample.withoutId(payload, 'externalId')),
      ],
      ['the state is missing', true, (payload) => sample.withoutState(payload)],
      ['an object without members', false, () => (this.#isInvalid({}) ? {} : undefined)],
    ];
    const made = all.flatMap(([title, isBookable, toBody]) => {
      const transfer = this.#announce('unbookable', (payload) => payload);
      const payload = toBody(this.#make('SUCCESS', transfer));
      return payload === undefined ? [] : [{ title, isBookable, transfer, body: this.#write(payload) }];
    });
    const texts: readonly [title: string, body: string][] = [['an empty body', '']];
    const jsonTexts: typeof texts = [
      ['a body that is not JSON', 'state=success'],
      ['null', 'null'],
    ];
    const written = [...texts, ...(this.isForm ? [] : jsonTexts)].map(([title, body]) => {
      return { title, body, isBookable: false, transfer: this.#announce('unbookable', (payload) => payload) };
    });
    // Without a signature a body would be refused for that alone.
    return [...made, ...written].filter(({ body }) => !this.#signer.fails(body));
  }

  undocumented(): readonly InvalidBody[] {
    return [];
  }

  #isInvalid(payload: unknown): boolean {
    return this.#service.readCallback(payload).kind === 'invalid';
  }

  #make(status: FinalStatus, { id, externalId }: Ids): unknown {
    return (this.#samples[status] ?? this.#samples.SUCCESS).make({ id, externalId });
  }

  #announce(name: string, change: (payload: unknown) => unknown): Announced {
    const ids = this.toFreshIds(`check-${name}`);
    const body = this.#write(change(this.#make('SUCCESS', ids)));
    const { amount, currency } = this.#samples.SUCCESS.money;
    return { ...ids, status: 'SUCCESS', amount, currency, body };
  }

  #write(payload: unknown): string {
    return this.isForm ? new URLSearchParams(payload as Record<string, string>).toString() : JSON.stringify(payload);
  }

  #findGaps(whyNoReversal: string): Gaps {
    const { SUCCESS: sample } = this.#samples;
    const hasReversals = this.#service.meanings?.has('REVERSED') === true;
    const reversal = hasReversals ? 'Give --reversed, a sample of a reversal.' : whyNoReversal;
    const all: readonly [name: string, isGap: boolean, why: string][] = [
      ['reversed', this.#samples.REVERSED === undefined, reversal],
      ['failed-reversed', this.#samples.REVERSED === undefined, reversal],
      ['other-amount', !sample.hasAmount, 'The definition reads no amount.'],
      ['unknown-state', sample.makeUnknown(sample.payload) === undefined, 'Every value is a state of the definition.'],
      ['foreign-event', sample.makeForeign(sample.payload) === undefined, 'The definition ignores no event.'],
      ['wrong-content-type', true, 'The definition does not tell what comes under another type.'],
      ['undocumented', true, 'The definition tells nothing of fields that it does not read.'],
    ];
    return Object.fromEntries(all.filter(([, isGap]) => isGap).map(([name, , why]) => [name, why]));
  }
}
