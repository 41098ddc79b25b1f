import { isAcknowledgement, type AttemptResponse } from '../../attempt/attempt.js';
import type { Announced } from './service.js';
import type { Fault, Stage } from './stage.js';
import { judgeAcknowledged, judgeOnce, type Tried, type Trial } from './trial.js';

const group = 'documented';
const isLost = 'What you could not read is lost.';

/** The rows whose first attempt has a fault. The others of the callback are whole. */
export const faultTrials: readonly Trial[] = [
  { name: 'slow-sender', group, right: 'acknowledges it', play: sendSlowly },
  { name: 'malformed', group, right: 'refuses it, takes the whole one', play: cutShort },
  { name: 'wrong-content-type', group, right: 'books it, or takes the JSON', play: sendAsText },
];

async function sendSlowly(stage: Stage): Promise<Tried> {
  const { transfer, responses } = await announceWith(stage, 'slow-sender', () => ({ pieces: true }));
  return judgeOnce(
    transfer,
    responses,
    judgeAcknowledged(stage, responses, 'Over a bad line no callback reaches you.'),
  );
}

async function cutShort(stage: Stage): Promise<Tried> {
  const { transfer, responses, isFaultAcknowledged } = await announceWith(stage, 'malformed', (transfer) => {
    return { body: stage.service.cutShort(transfer) };
  });
  const wire = isFaultAcknowledged
    ? { wrong: `A body that was cut short was acknowledged. ${isLost}` }
    : judgeAcknowledged(stage, responses, isLost);
  return judgeOnce(transfer, responses, wire);
}

async function sendAsText(stage: Stage): Promise<Tried> {
  const { transfer, responses, isFaultAcknowledged } = await announceWith(stage, 'wrong-content-type', () => {
    return { contentType: 'text/plain' };
  });
  return judgeOnce(transfer, responses, judgeAcknowledged(stage, responses, isLost), ({ kind }) =>
    isFaultAcknowledged && kind === 'uncounted'
      ? 'It was acknowledged under text/plain: right if your app has booked it. Give --count.'
      : undefined,
  );
}

interface Faulty {
  readonly transfer: Announced;
  readonly responses: readonly AttemptResponse[];
  readonly isFaultAcknowledged: boolean;
}

async function announceWith(stage: Stage, name: string, toFault: (transfer: Announced) => Fault): Promise<Faulty> {
  const transfer = await stage.create(name, 'SUCCESS');
  const responses = await stage.announce(transfer, toFault(transfer));
  return { transfer, responses, isFaultAcknowledged: responses.slice(0, 1).some(isAcknowledgement) };
}
