import { $, clockTime, due, duration, el, sandbox } from './dom.js';
import * as words from './words.js';

const list = $('timeline');

/**
 * Shows the events of a transfer in the order of their times. An attempt is known when it has ended, and is listed at the
 * time when it was sent. Elements that are shown already stay, so that a selection in them does. @type {ForTransfer<void>}
 */
export function showTimeline(transfer) {
  const events = transfer.events
    .filter(({ type }) => type !== 'acknowledged') // The attempt shows it.
    .sort((one, other) => one.atMs - other.atMs);
  const keys = events.map((event, index) => `${transfer.id} ${toKey(event)} ${events[index - 1]?.atMs}`);
  for (const shown of [...list.children]) if (!keys.includes(shown.getAttribute('data-key') ?? '')) shown.remove();
  events.forEach((event, index) => {
    const [shown = null, key = ''] = [list.children[index], keys[index]];
    if (shown?.getAttribute('data-key') === key) return;
    const element = toElement(describe(event, transfer), events[index - 1]?.atMs);
    element.setAttribute('data-key', key);
    list.insertBefore(element, shown);
  });
  const ahead = describeAhead(transfer);
  if (ahead) list.append(toElement(ahead, events.at(-1)?.atMs));
}

/** Returns the key of an event, which changes when a query is repeated. @param {Transfer['events'][number]} event */
function toKey(event) {
  const number = event.type === 'attempt' ? event.attempt.number : event.type === 'queried' ? event.times : 0;
  return `${event.type} ${event.atMs} ${number}`;
}

/** @param {Item} item @param {number} [beforeMs] */
function toElement({ tone, atMs = 0, what, result = [], more = [] }, beforeMs = atMs) {
  const time = atMs ? clockTime(atMs, 10) : '';
  const seconds = Math.round((atMs - beforeMs) / 1_000);
  const gap = seconds > 0 ? `+${duration(seconds * 1_000)}` : '';
  return el(
    'li',
    {},
    el('span', { class: tone, 'aria-hidden': true }, words.signs[tone]),
    el('span', { class: 'when' }, el('time', {}, time), el('small', {}, gap)),
    el('div', {}, el('p', { class: 'what' }, el('span', {}, what), ...result), ...more),
  );
}

/** @param {string} text */
const hint = (text) => el('p', { class: 'hint' }, text);

/** @param {Transfer['events'][number]} event @param {Transfer} transfer @returns {Item} */
function describe(event, transfer) {
  const { type, atMs } = event;
  const item = { tone: /** @type {Tone} */ ('event'), atMs, what: type };
  switch (type) {
    case 'attempt':
      return describeAttempt(event.attempt, transfer);
    case 'created':
      return { ...item, result: ['201, PENDING'] };
    case 'queried':
      return {
        ...item,
        what: 'app queried',
        result: [`${event.status ?? 500}${event.times > 1 ? `, ${event.times} times` : ''}`],
      };
    case 'final': {
      const isFirst = transfer.events.find((each) => each.type === type) === event;
      return { ...item, what: isFirst ? type : 'contradicted', result: [event.status] };
    }
    default:
      return { ...item, result: ['the same bytes'] };
  }
}

/** @type {ForAttempt<Item>} */
function describeAttempt(attempt, transfer) {
  const { response, sentAtMs: atMs, durationMs, body, contentType, tone, text, reason = '', result: got } = attempt;
  const isLost = got === 'lost on the way';
  const all = words.attemptsOf(transfer);
  const before = all[all.indexOf(attempt) - 1];
  const isSame = before && textOf(before) === textOf(attempt);
  // What the merchant did: this package's response has its outcome.
  const did = text === 'acknowledged' && ['processed', 'duplicate'].includes(reason) ? reason : text !== got && text;
  const took = [did, !isLost && `${durationMs} ms`].filter(Boolean).join(', ');
  const result = [el('span', { class: `result ${tone}` }, got), took];
  const item = { tone, atMs, what: inFull(attempt.name), result };
  if (isSame) return { ...item, more: [hint('The same request and response as before.')] };
  /** @type {Node[]} */ const more = [hint(attempt.hint), ...bothSides(attempt)];
  if (isLost) return { ...item, more };
  const headers = { ...sandbox.settings.callbackHeaders, 'Content-Type': contentType };
  const request = words.toRequest(new URL(String(transfer.callbackUrl)), headers, body);
  const pair = el('div', { class: 'pair' }, el('pre', {}, request), el('pre', {}, words.toResponse(response)));
  more.push(el('details', tone === 'bad' ? { open: '' } : {}, el('summary', {}, 'Request and response'), pair));
  const command = words.toCurl(String(transfer.callbackUrl), headers, body);
  more.push(el('button', { class: 'copy', 'data-text': command }, 'Copy curl'));
  return { ...item, more };
}

/** What must be the same in two attempts to show them as one. A header may have the time. @param {Attempt} attempt */
const textOf = ({ result, response, body }) => JSON.stringify([result, { ...response, headers: 0 }, body]);

/** @param {string} name */
const inFull = (name) => (name.startsWith('attempt') ? `${name} of 4` : name);

/** The two sides of a contradiction. @param {Attempt} attempt @returns {Node[]} */
function bothSides({ body: sent, contradictedBody: handled }) {
  if (!handled) return [];
  const toRow = (/** @type {string} */ name, /** @type {string} */ body) => {
    const { status = '', amount, currency, externalId = '' } = words.factsIn(body);
    const cells = [status, `${amount} ${currency}`, externalId].map((text) => el('td', {}, text));
    return el('tr', {}, el('th', { scope: 'row' }, name), ...cells);
  };
  return [el('table', {}, toRow('Handled before', handled), toRow('Sent now', sent))];
}

/** What is under way or due, or that nothing more follows. @type {ForTransfer<Item | undefined>} */
function describeAhead(transfer) {
  const { finalDueMs, next, nextName, underWay, delivered, callbackState } = transfer;
  if (finalDueMs !== undefined) return { tone: 'open', atMs: finalDueMs, what: 'final', result: [due(finalDueMs)] };
  if (underWay) return { tone: 'open', what: 'under way', result: [String(underWay)] };
  if (next) {
    const atMs = next.plannedAtMs;
    return { tone: 'open', atMs, what: inFull(String(nextName)), result: [due(atMs)] };
  }
  if (delivered) return undefined;
  const { tone, text } = callbackState;
  if (tone === 'good') return { tone, what: text };
  if (text.endsWith('queried')) return { tone, what: text };
  return { tone, what: text, more: [hint('A query still shows the final status: reconcile such transfers.')] };
}
