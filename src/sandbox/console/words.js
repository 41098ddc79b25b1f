/** A state is a sign and a word, never a colour alone. */
export const signs = { good: '✓', bad: '✗', open: '◌', none: '–', event: '●' };

/** The facts of a callback; none of one that the scenario has cut short. @param {string} body @returns {Facts} */
export function factsIn(body) {
  try {
    return JSON.parse(body).data;
  } catch {
    return {};
  }
}

/** @type {ForTransfer<Attempt[]>} */
export const attemptsOf = ({ events }) => events.flatMap((event) => (event.type === 'attempt' ? [event.attempt] : []));

/** @param {Attempt} attempt */
export const isLost = ({ response }) => 'error' in response && response.error === 'lost';

/** @param {Attempt} attempt @returns {Tone} */
export function toneFor(attempt) {
  const { response } = attempt;
  if ('status' in response && response.status >= 200 && response.status < 300) return 'good';
  return isLost(attempt) ? 'open' : 'bad';
}

/** @param {Attempt} attempt */
export function resultFor({ response }) {
  return 'status' in response ? String(response.status) : response.error.replace(/^lost$/, 'lost on the way');
}

/** The state of the callback of a transfer. @type {ForTransfer<{ tone: Tone, text: string, dueMs?: number }>} */
export function standing(transfer) {
  const { next, underWay, delivered, callbackUrl, finalDueMs } = transfer;
  if (finalDueMs !== undefined) return { tone: 'open', text: 'final', dueMs: finalDueMs };
  const last = attemptsOf(transfer).at(-1);
  const tone = last ? toneFor(last) : 'open';
  const before = last ? `${tone === 'good' ? 'acknowledged' : resultFor(last)}, ` : '';
  if (underWay) return { tone, text: `${before}${underWay} under way` };
  if (next) return { tone, text: `${before}attempt ${next.number}`, dueMs: next.plannedAtMs };
  if (!last) return { tone: 'none', text: callbackUrl ? 'no callback is sent' : 'no callbackUrl' };
  return delivered
    ? { tone: 'good', text: `acknowledged, attempt ${last.number}` }
    : { tone: 'bad', text: `${before}gave up after attempt ${last.number}` };
}

/** "burst-1: 10 attempts, 10 got 200" @param {Attempt[]} attempts */
export function sentenceOn(attempts) {
  const names = [...new Set(attempts.map(({ externalId }) => externalId))];
  if (names.length > 1) return `${names.length} transfers: ${attempts.length} attempts`;
  const results = attempts.map((each) => {
    const result = 'status' in each.response ? `got ${each.response.status}` : resultFor(each);
    return each.reason === 'duplicate' ? `${result} duplicate` : result;
  });
  if (attempts.length === 1) return `${names}: attempt ${attempts[0]?.number} ${results}`;
  const counts = [...new Set(results)].map((result) => `${results.filter((each) => each === result).length} ${result}`);
  return `${names}: ${attempts.length} attempts, ${counts.join(', ')}`;
}

/** The callback with another outcome that was acknowledged before an attempt. @type {ForAttempt<Attempt | undefined>} */
export function contradictedBy(attempt, transfer) {
  const all = attemptsOf(transfer);
  const before = all.slice(0, all.indexOf(attempt)).findLast((each) => toneFor(each) === 'good');
  return before && factsIn(before.body).status !== factsIn(attempt.body).status ? before : undefined;
}

/** A request as a command for a shell. @param {string} url @param {Record<string, string>} headers @param {string} body */
export function toCurl(url, headers, body) {
  const quote = (/** @type {string} */ text) => `'${text.replaceAll("'", String.raw`'\''`)}'`;
  const lines = Object.entries(headers).map((header) => `-H ${quote(header.join(': '))}`);
  return [`curl -i ${quote(url)}`, ...lines, `--data-binary ${quote(body)}`].join(' \\\n  ');
}

/** An attempt as a test of the app. @type {ForAttempt<string>} */
export function toTest(attempt, transfer) {
  const before = contradictedBy(attempt, transfer);
  const options = `{ path: '${new URL(String(transfer.callbackUrl)).pathname}', retry: false }`;
  const first = before ? `  await deliver(app, ${JSON.stringify(before.body)}, ${options});\n` : '';
  return `import { deliver } from 'transfer-callbacks/testing';
import { expect, test } from 'vitest';
import { app } from './app.js'; // Your Express app.

test(${JSON.stringify(`${transfer.externalId}, attempt ${attempt.number}`)}, async () => {
${first}  const { acknowledged } = await deliver(app, ${JSON.stringify(attempt.body)}, ${options});
  expect(acknowledged).toBe(${Boolean(factsIn(attempt.body).status && !before)});
});
`;
}
