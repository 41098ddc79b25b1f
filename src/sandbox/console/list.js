import { $, due, el, write } from './dom.js';
import { signs, standing } from './words.js';

/** @type {HTMLInputElement} */
const filter = $('filter');
const body = $('rows');

/** @type {Map<string, HTMLElement[]>} a row is made once, so that the focus in it stays */
const rows = new Map();

/** @type {ForTransfer<void>} */
export function showRow(transfer) {
  const { id, externalId, state } = transfer;
  const [row, link, status, stands] = rows.get(id) ?? addRow(transfer);
  const { tone, text, dueMs } = standing(transfer);
  const key = [externalId, id, state, text, dueMs].join(' ').toLowerCase();
  if (!row || !link || !status || !stands || row.dataset.key === key) return;
  row.dataset.key = key;
  write(link, externalId);
  write(status, state);
  const sign = el('span', { class: tone, 'aria-hidden': true }, signs[tone]);
  stands.replaceChildren(sign, ` ${text} `, dueMs ? due(dueMs) : '');
}

/** @type {ForTransfer<HTMLElement[]>} */
function addRow({ id }) {
  const link = el('a', { href: `#/transfer/${id}` });
  const cells = [el('td', { class: 'state' }), el('td', { class: 'stands' })];
  const row = [el('tr', {}, el('th', { scope: 'row' }, link), ...cells), link, ...cells];
  rows.set(id, row);
  body.prepend(row[0] ?? '');
  return row;
}

/** Leaves the rows of these transfers. @param {ReadonlyMap<string, unknown>} transfers */
export function keepRows(transfers) {
  for (const [id, [row]] of rows) {
    if (transfers.has(id)) continue;
    row?.remove();
    rows.delete(id);
  }
}

/** @param {string | undefined} shownId @param {number} total */
export function markRows(shownId, total) {
  const wanted = filter.value.trim().toLowerCase();
  let shown = 0;
  for (const [id, [row, link]] of rows) {
    if (!row || !link) continue;
    link.ariaCurrent = id === shownId ? 'true' : null;
    row.hidden = !row.dataset.key?.includes(wanted);
    if (!row.hidden) shown += 1;
  }
  write($('list-title'), `Transfers (${shown === total ? total : `${shown} of ${total}`})`);
  write($('list-note'), shown ? '' : 'None to show.');
}

$('list').addEventListener('keydown', (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined) return;
  /** @type {NodeListOf<HTMLElement>} */
  const stops = $('list').querySelectorAll('input, tr:not([hidden]) a');
  const at = [...stops].findIndex((stop) => stop === document.activeElement);
  event.preventDefault();
  stops[at === -1 ? 1 : at + step]?.focus();
});
