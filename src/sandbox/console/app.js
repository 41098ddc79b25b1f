import { setUpForm, showForm } from './create.js';
import { resend, showTransfer } from './detail.js';
import { $, clockTime, duration, press, sandbox, say, tick, write } from './dom.js';
import { keepRows, markRows, showRow } from './list.js';
import { sentenceOn } from './words.js';

/** @type {Map<string, Transfer>} */
const transfers = new Map();
let total = 0;
/** @type {EventSource | undefined} */
let stream;
/** @type {Attempt[]} not told yet */
const untold = [];
/** @type {HTMLButtonElement} */
const skip = $('skip');

function connect() {
  stream?.close();
  stream = new EventSource('events');
  const takers = { state: takeState, transfer: takeTransfer, clock: takeClock };
  for (const [name, take] of Object.entries(takers))
    stream.addEventListener(name, ({ data }) => take(JSON.parse(data)));
  stream.addEventListener('error', () => {
    write($('live'), '◌ reconnecting');
    // The browser gives up when it is refused: too many pages are open.
    if (stream?.readyState === EventSource.CLOSED) setTimeout(connect, 1_000);
  });
}

/** @param {State} state */
function takeState({ settings, clock, ...state }) {
  write($('live'), '● live');
  takeClock(clock);
  // Another sandbox may have started on this port, with the same ids.
  if (JSON.stringify(sandbox.settings) !== JSON.stringify(settings)) setUpForm(settings);
  sandbox.settings = settings;
  transfers.clear();
  for (const transfer of state.transfers) transfers.set(transfer.id, transfer);
  total = state.total;
  state.transfers.forEach(showRow);
  $('timeline').replaceChildren();
  show();
}

/** @param {Transfer} transfer */
function takeTransfer(transfer) {
  const before = transfers.get(transfer.id);
  transfers.set(transfer.id, transfer);
  if (!before) total += 1;
  // A stream begins with as many.
  const [oldest = ''] = transfers.keys();
  if (transfers.size > 200) transfers.delete(oldest);
  for (const event of transfer.events.slice(before?.events.length))
    if (event.type === 'attempt') untold.push(event.attempt);
  showRow(transfer);
  show();
}

/** @param {Clock} clock */
function takeClock(clock) {
  sandbox.clock = clock;
  sandbox.since = performance.now();
  write($('speed'), { 0: 'stands still', 1: '' }[clock.speed] ?? `×${clock.speed}`);
  skip.disabled = clock.nextMs === undefined;
  beat();
}

/** Shows what the address names, the newest transfer, or the form. */
function show() {
  const [, kind = '', id = ''] = location.hash.split('/');
  const transfer = kind === 'transfer' ? transfers.get(id) : [...transfers.values()].at(-1);
  const isForm = kind === 'new' || (!transfer && kind !== 'transfer');
  document.body.dataset.view = kind ? 'detail' : 'list';
  $('new').hidden = !isForm;
  $('transfer').hidden = isForm || !transfer;
  $('unknown').hidden = isForm || !$('transfer').hidden;
  if (isForm) showForm(total);
  else if (transfer) showTransfer(transfer);
  keepRows(transfers);
  markRows(isForm ? undefined : transfer?.id, total);
  document.title = `${title()?.textContent} · sandbox`;
}

/** @returns {HTMLElement | null} */
const title = () => $('detail').querySelector('article:not([hidden]) h2');

window.addEventListener('hashchange', () => {
  const isListed = $('rows').contains(document.activeElement);
  show();
  // In the list the arrow keys go on. Elsewhere, and where the list is hidden, reading begins at the title.
  if (!isListed || !$('list').checkVisibility()) title()?.focus();
});

function beat() {
  const { nextMs } = sandbox.clock;
  if (!sandbox.since) return;
  write($('time'), `${clockTime(sandbox.now())} UTC`);
  write($('skip-due'), nextMs === undefined ? '' : ` · ${duration(Math.max(0, nextMs - sandbox.now()))}`);
  tick();
}

const skipToNext = () => press(skip, 'advance', {});

/** @type {Record<string, () => unknown>} */
const actions = {
  n: () => (location.hash = '#/new'),
  r: resend,
  s: skipToNext,
  '/': () => $('filter').focus(),
  '?': () => $('keys').togglePopover(),
};

$('list').parentElement?.addEventListener('keydown', (event) => {
  const isField = event.target instanceof Element && event.target.matches('input');
  const action = actions[event.key];
  if (isField || event.ctrlKey || event.altKey || event.metaKey || !action) return;
  event.preventDefault();
  action();
});

$('filter').addEventListener('input', show);
skip.addEventListener('click', skipToNext);
// A browser has six connections to a host: a hidden page must not hold one.
document.addEventListener('visibilitychange', () => (document.hidden ? stream?.close() : connect()));
setInterval(beat, 250);
setInterval(() => {
  // At most one sentence a second: a burst would shout.
  if (untold.length > 0) say(sentenceOn(untold.splice(0)));
}, 1_000);
connect();
