import { sandbox } from './dom.js';

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

/** The callback with another outcome that was acknowledged before an attempt. @type {ForAttempt<Attempt | undefined>} */
export function contradictedBy(attempt, transfer) {
  const all = attemptsOf(transfer);
  const before = all.slice(0, all.indexOf(attempt)).findLast(({ tone }) => tone === 'good');
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
  const { pathname, search } = new URL(String(transfer.callbackUrl));
  const { callbackHeaders: headers } = sandbox.settings;
  const options = JSON.stringify({ path: pathname + search, headers, retry: false });
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
