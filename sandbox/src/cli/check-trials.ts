import { setTimeout as pause } from 'node:timers/promises';
import { isAcknowledgement, type AttemptResponse } from '../attempt/attempt.js';
import { judgeAttempts, type TransferScenario } from '../service/scenarios.js';
import { firstRetryMs } from '../../../src/core/service.js';
import { transferSucceeded } from '../../../src/testing/fixtures.js';
import { undocumentedBodies, unbookableBodies } from './check-bodies.js';
import type { Breakage, NamedTransfer } from './check-commands.js';
import type { Announced, Attempt, Fault, Stage } from './check-stage.js';

/** What came of a trial on the wire. */
export interface Tried {
  /** The transfer that can be counted. */
  readonly transfer?: NamedTransfer;
  readonly responses: readonly AttemptResponse[];
  /** What a right endpoint does not do, and what it costs. */
  readonly wrong?: string | undefined;
  /** Why no verdict is possible. */
  readonly unseen?: string | undefined;
  /** Why there is no verdict without a count. */
  readonly needsCount?: string | undefined;
  readonly note?: string | undefined;
}

/** One thing that a right endpoint does. */
export interface Trial {
  readonly name: string;
  /** What a right endpoint does. */
  readonly right: string;
  /** Whether the document of the service demands it, or an endpoint may do without. */
  readonly group: 'documented' | 'stricter';
  /** How often its transfer is booked rightly. */
  readonly bookings: 0 | 1;
  /** Resolves with `undefined` if the options do not allow it. */
  readonly play: (stage: Stage) => Promise<Tried | undefined>;
}

const staysOpen = 'After its last attempt the service is silent: the payout stays open in your books.';
const isLost = 'What you could not read is lost.';

const documented = { group: 'documented', bookings: 1 } as const;
const stricter = { group: 'stricter', bookings: 1 } as const;

export const trials: readonly Trial[] = [
  { ...documented, name: 'success', right: 'acknowledges it', play: announce('success', staysOpen) },
  { ...documented, name: 'failed', right: 'acknowledges it', play: announce('failed', staysOpen) },
  { ...documented, name: 'duplicate', right: 'acknowledges the copy, too', play: sendTwice },
  { ...documented, name: 'burst', right: 'acknowledges one of ten', play: sendTenTimes },
  {
    ...documented,
    name: 'response-lost',
    right: 'acknowledges the next attempt',
    play: announce('response-lost', staysOpen, () => ({ dropResponse: true })),
  },
  {
    ...documented,
    name: 'slow-sender',
    right: 'acknowledges it',
    play: announce('slow-sender', 'Over a bad line no callback reaches you.', () => ({ pieces: true })),
  },
  {
    ...documented,
    name: 'malformed',
    right: 'refuses it, takes the whole one',
    play: announce('malformed', isLost, ({ event, data }) => {
      const whole = JSON.stringify({ event, data });
      return { body: whole.slice(0, whole.length / 2) };
    }),
  },
  { ...documented, name: 'wrong-content-type', right: 'books it, or takes the JSON', play: sendAsText },
  { ...documented, name: 'unbookable', right: 'refuses each body', bookings: 0, play: sendBodies(unbookableBodies) },
  { ...documented, name: 'stranger', right: 'does not believe it', bookings: 0, play: sendAsStranger },
  { ...stricter, name: 'flip', right: 'refuses SUCCESS after FAILED', play: contradict },
  { ...stricter, name: 'other-amount', right: 'refuses it for a known id', play: sendOtherAmount },
  {
    ...stricter,
    name: 'undocumented',
    right: 'refuses each body',
    bookings: 0,
    play: sendBodies(undocumentedBodies),
  },
];

/** Announces a transfer, its first attempt with a fault. `cost` is what it costs to respond otherwise. */
function announce(scenario: TransferScenario, cost: string, toFault?: (transfer: Announced) => Fault): Trial['play'] {
  return async (stage) => {
    const transfer = await stage.create(scenario, scenario === 'failed' ? 'FAILED' : 'SUCCESS');
    const attempts = await stage.announce(transfer, toFault?.(transfer));
    return judge(stage, { transfer, scenario, attempts, cost });
  };
}

async function sendTwice(stage: Stage): Promise<Tried> {
  const transfer = await stage.create('duplicate');
  const attempts = await stage.announce(transfer);
  await stage.wait(firstRetryMs);
  attempts.push(await stage.send(transfer, attempts.length + 1));
  return judge(stage, {
    transfer,
    scenario: 'duplicate',
    attempts,
    cost: 'The service repeats what you have handled.',
  });
}

async function sendTenTimes(stage: Stage): Promise<Tried> {
  const transfer = await stage.create('burst');
  const attempts = await Promise.all(Array.from({ length: 10 }, (_, index) => stage.send(transfer, index + 1)));
  return judge(stage, { transfer, scenario: 'burst', attempts, cost: staysOpen });
}

async function sendAsText(stage: Stage): Promise<Tried> {
  const tried = await announce('wrong-content-type', isLost, () => ({ contentType: 'text/plain' }))(stage);
  const [first] = tried?.responses ?? [];
  const isRead = first !== undefined && isAcknowledgement(first);
  return {
    ...(tried ?? { responses: [] }),
    needsCount: isRead ? 'JSON under text/plain was acknowledged: right if your app has booked it.' : undefined,
  };
}

function sendBodies(makeBodies: typeof unbookableBodies): Trial['play'] {
  return async (stage) => {
    const bodies = makeBodies();
    const responses: AttemptResponse[] = [];
    const acknowledged: string[] = [];
    for (const { title, externalId, body } of bodies) {
      await stage.prepare({ externalId, status: 'SUCCESS' });
      const { response } = await stage.send({ externalId, event: '', data: {} }, 1, { body });
      responses.push(response);
      if (isAcknowledgement(response)) acknowledged.push(title);
    }
    if (acknowledged.length > 0) {
      const all = acknowledged.length > 3 ? `${acknowledged.slice(0, 3).join('; ')}; …` : acknowledged.join('; ');
      const wrong = `${acknowledged.length} of ${bodies.length} acknowledged: ${all}. What you cannot book counts as received.`;
      return { responses, wrong };
    }
    const broken = responses.filter((response) => 'error' in response).length;
    if (broken === 0) return { responses };
    const note = 'A connection broke. If the process has ended, whoever sends such a body can end it.';
    const unseen = broken > 1 ? `${broken} of ${bodies.length} bodies got no response.` : undefined;
    return { responses, note, unseen };
  };
}

async function sendAsStranger(stage: Stage): Promise<Tried | undefined> {
  if (stage.strangerUrl === undefined) return undefined;
  const forged = transferSucceeded();
  const transfer = { externalId: forged.data.externalId, status: 'SUCCESS' } as const;
  await stage.prepare(transfer);
  const response = await stage.sendAsStranger(stage.strangerUrl, forged);
  if (!('status' in response)) return { responses: [response], unseen: 'The stranger got no response.' };
  const wrong =
    'A callback without the secret was acknowledged. Whoever knows the address can have a payout count as paid.';
  return { transfer, responses: [response], wrong: isAcknowledgement(response) ? wrong : undefined };
}

async function contradict(stage: Stage): Promise<Tried> {
  const transfer = await stage.create('flip', 'FAILED');
  const attempts = await stage.announce(transfer);
  const data = { ...transfer.data, status: 'SUCCESS', failureReason: null };
  const { externalId } = transfer;
  attempts.push(await stage.send({ externalId, event: 'transfer.success', data }, attempts.length + 1));
  const cost = 'You have refunded what was paid, and nobody learns of it.';
  return judge(stage, { transfer, scenario: 'flip', attempts, cost });
}

async function sendOtherAmount(stage: Stage): Promise<Tried> {
  const transfer = await stage.create('other-amount');
  const attempts = await stage.announce(transfer);
  const data = { ...transfer.data, amount: Number(transfer.data.amount) + 1 };
  attempts.push(await stage.send({ ...transfer, data }, attempts.length + 1));
  const responses = attempts.map(({ response }) => response);
  const isAccepted = responses.slice(-2).every(isAcknowledgement);
  const wrong = 'Another amount under the same id was acknowledged: your books and the service disagree.';
  return { transfer, responses, wrong: isAccepted ? wrong : undefined };
}

/** The trial that needs --break and --mend. */
export const breaking: Omit<Trial, 'play'> = {
  ...documented,
  name: 'handler-fails',
  right: 'refuses it, takes the retry',
};

const afterResponseMs = 1_500;

/** Sends a callback while the app cannot book, and retries when it can. */
export async function failOnce(stage: Stage, breakage: Breakage): Promise<Tried & { readonly isMended: boolean }> {
  const transfer = await stage.create('handler-fails');
  const isBroken = await breakage.break(transfer);
  const first = isBroken ? [await stage.send(transfer)] : [];
  // What an app does after its response must fail, too.
  if (first.some(({ response }) => isAcknowledgement(response))) await pause(afterResponseMs);
  const isMended = await breakage.mend(transfer);
  if (!isBroken || !isMended) {
    const name = isBroken ? '--mend' : '--break';
    return { responses: [], unseen: `The command of ${name} did not end with 0.`, isMended };
  }
  const attempts = await stage.retry(transfer, first);
  const responses = attempts.map(({ response }) => response);
  const seen = { transfer, responses, isMended };
  if (first.some(({ response }) => isAcknowledgement(response))) {
    const note =
      'It was acknowledged while --break was in force: right with a durable queue, or --break did not break it.';
    return { ...seen, note, needsCount: 'It was acknowledged while your app was broken: right if it is booked later.' };
  }
  if (responses.some(isAcknowledgement)) {
    return { ...seen, needsCount: 'The retry was acknowledged: right if it is booked, and not only remembered.' };
  }
  const because = `None of ${attempts.length} attempts was acknowledged.`;
  return stage.isRealTime
    ? { ...seen, wrong: `${because} ${staysOpen}` }
    : { ...seen, unseen: `${because} ${tryRealTime}` };
}

const tryRealTime = 'The service retries after 30 s, which is 0.3 s here: try --real-time.';

interface Played {
  readonly transfer: Announced;
  readonly scenario: TransferScenario;
  readonly attempts: readonly Attempt[];
  readonly cost: string;
}

function judge(stage: Stage, { transfer, scenario, attempts, cost }: Played): Tried {
  const responses = attempts.map(({ response }) => response);
  const { passed, because } = judgeAttempts(scenario, attempts);
  if (passed) return { transfer, responses };
  const last = responses.at(-1);
  // A lease, or a restart, may outlast the fast retries.
  if (!stage.isRealTime && last !== undefined && isBusy(last)) {
    return { transfer, responses, unseen: `${because} ${tryRealTime}` };
  }
  return { transfer, responses, wrong: `${because} ${cost}` };
}

/** Whether the endpoint may do better in a while. */
function isBusy(response: AttemptResponse): boolean {
  return !('status' in response) || [409, 423, 425, 429, 502, 503, 504].includes(response.status);
}
