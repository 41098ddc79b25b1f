import { $, due, el, write } from './dom.js';
import { signs, toName } from './words.js';

const body = $('rows');

/** @type {Map<string, HTMLElement>} a row is made once, so that the focus in it stays */
const rows = new Map();

/** @type {HTMLInputElement} */ const find = $('find');
/** @type {HTMLSelectElement} */ const outcome = $('outcome');

/** What the list is narrowed to. */
export const pageQuery = () => ({ find: find.value, outcome: outcome.value });

/** Shows rows that have changed, or all of them. @param {List} list @param {boolean} isWhole */
export function showRows({ rows: changed, gone, total, matching }, isWhole) {
  const kept = new Set(changed.map(({ id }) => id));
  for (const id of isWhole ? [...rows.keys()] : gone) if (!kept.has(id)) remove(id);
  changed.forEach(showRow);
  write($('list-title'), `Transfers (${matching === total ? total : `${matching} of ${total}`})`);
  const isCut = rows.size < matching;
  const empty = matching || !total ? '' : 'No transfer matches.';
  write($('list-note'), isCut ? `The newest ${rows.size}. Search finds the others.` : empty);
}

/** @param {string} id */
function remove(id) {
  const row = rows.get(id);
  // Without the focus in it, the list would not get the next key.
  if (row?.contains(document.activeElement)) $('list').focus();
  row?.remove();
  rows.delete(id);
}

/** @param {Row} row */
function showRow({ id, externalId, state, tone, text, dueMs, place }) {
  const link = el('a', { href: `#/transfer/${id}` }, toName(externalId));
  const sign = el('span', { class: tone, 'aria-hidden': true }, signs[tone]);
  const row = rows.get(id) ?? el('tr', { 'data-place': place }, el('th', { scope: 'row' }, link));
  while (row.children[1]) row.children[1].remove();
  row.append(
    el('td', { class: `state ${state.includes('FAILED') ? 'FAILED' : ''}` }, state),
    el('td', { class: 'stands' }, sign, ` ${text} `, dueMs ? due(dueMs) : ''),
  );
  if (rows.has(id)) return;
  rows.set(id, row);
  /** @type {NodeListOf<HTMLElement>} */ const others = body.querySelectorAll('tr');
  body.insertBefore(row, [...others].find((other) => Number(other.dataset.place) < place) ?? null);
}

/** @param {string | undefined} shownId */
export function markRow(shownId) {
  body.querySelector('[aria-current]')?.removeAttribute('aria-current');
  rows.get(String(shownId))?.querySelector('a')?.setAttribute('aria-current', 'true');
}

$('list').addEventListener('keydown', (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined || document.activeElement?.matches('select')) return;
  /** @type {NodeListOf<HTMLElement>} */ const stops = $('list').querySelectorAll('#find, a');
  const at = [...stops].findIndex((stop) => stop === document.activeElement);
  event.preventDefault();
  stops[at === -1 ? 1 : at + step]?.focus();
});
