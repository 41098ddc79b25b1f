import type { Process } from './process.js';
import { times, toDelivery, type Delivery } from './promises.js';
import type { Status } from '../support/helpers/reversing.js';

export interface PlannedDelivery extends Delivery {
  readonly process: Process;
  readonly notBeforeMs: number;
  readonly retryOf: PlannedDelivery | undefined;
}

/** The deliveries of the callback, arrived or to come: d1, d2 and so on. */
export class Deliveries {
  readonly all: PlannedDelivery[] = [];

  plan(process: Process, status: Status, notBeforeMs = 0, isRetry = false): PlannedDelivery {
    const retryOf = isRetry ? this.all.at(-1) : undefined;
    const delivery = { name: `d${this.all.length + 1}`, status, process, notBeforeMs, retryOf };
    this.all.push(delivery);
    return delivery;
  }

  /** The delivery that a token was made for. */
  find(token: string | undefined): PlannedDelivery | undefined {
    return token === undefined ? undefined : this.all.find(({ name }) => name === toDelivery(token));
  }

  /** Copies that may arrive at any time arrive in their order: one of them is the first. */
  thatCanArrive(now: number): PlannedDelivery[] {
    const nextCopy = this.all.find(isCopyToCome);
    return this.all.filter((delivery) => {
      if (hasStarted(delivery) || !delivery.process.isAwake) return false;
      return hasArrivalTime(delivery) ? toArrivalTime(delivery) <= now : delivery === nextCopy;
    });
  }

  /** When the next delivery can arrive that cannot yet. `Infinity` if there is none. */
  nextArrivalAt(now: number): number {
    const toCome = this.all.filter((delivery) => !hasStarted(delivery)).map(toArrivalTime);
    return Math.min(Infinity, ...toCome.filter((at) => at > now));
  }
}

export function hasStarted({ startedAt }: Delivery): boolean {
  return startedAt !== undefined;
}

function hasArrivalTime({ notBeforeMs, retryOf }: PlannedDelivery): boolean {
  return notBeforeMs > 0 || retryOf !== undefined;
}

function isCopyToCome(delivery: PlannedDelivery): boolean {
  return !hasStarted(delivery) && !hasArrivalTime(delivery) && delivery.process.state !== 'dead';
}

/** A retry arrives a lease after the attempt before it, and never if that one was acknowledged or has not ended. */
function toArrivalTime({ notBeforeMs, retryOf }: PlannedDelivery): number {
  if (retryOf === undefined) return notBeforeMs;
  const { outcome, startedAt = Infinity } = retryOf;
  if (outcome === undefined || outcome === 'processed' || outcome === 'duplicate') return Infinity;
  return startedAt + times.leaseMs + 1;
}
