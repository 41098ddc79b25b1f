import { setUpForm, showForm } from './create.js';
import { resend, showTransfer } from './detail.js';
import { $, clockTime, duration, el, press, sandbox, say, tick, write } from './dom.js';
import { markRow, showRows, pageQuery } from './list.js';

/** @type {EventSource | undefined} */ let stream;
/** @type {Transfer | null} */ let shown = null;
let total = 0;
/** Whether reading begins at the title of what is shown next. */
let isFollowed = false;
/** @type {HTMLButtonElement} */ const skip = $('skip');
/** @type {HTMLSelectElement} */ const speed = $('speed');
/** @type {HTMLButtonElement} */ const clear = $('clear');

/** What the address names: a kind of view, and the id of a transfer. */
const place = () => location.hash.split('/').slice(1);

/** Opens the stream of what the address, the search and the filter ask for. */
function connect() {
  stream?.close();
  const [kind = '', id = kind] = place();
  document.body.dataset.view = kind ? 'detail' : 'list';
  stream = new EventSource(`events?${new URLSearchParams({ ...pageQuery(), id })}`);
  stream.addEventListener('message', ({ data }) => take(JSON.parse(data)));
  stream.addEventListener('error', () => {
    write($('live'), '◌ reconnecting');
    // The browser gives up when it is refused: too many pages are open.
    if (stream?.readyState === EventSource.CLOSED) setTimeout(connect, 1_000);
  });
}

/** @param {Message} message */
function take({ settings, clock, said, shown: change, ...list }) {
  if (settings) {
    write($('live'), '● live');
    // Another sandbox may have started on this port, with the same ids.
    if (JSON.stringify(sandbox.settings) !== JSON.stringify(settings)) {
      setUpForm(settings);
      $('timeline').replaceChildren();
      showRows({ ...list, rows: [] }, true);
    }
    sandbox.settings = settings;
  }
  takeClock(clock);
  total = list.total;
  clear.disabled = !total;
  showRows(list, Boolean(settings));
  if (change) shown = { ...change, events: [...(shown?.events.slice(0, change.from) ?? []), ...change.events] };
  else if (change === null) shown = null;
  show();
  if (said) say(said);
}

/** @param {Clock} clock */
function takeClock(clock) {
  sandbox.clock = clock;
  sandbox.since = performance.now();
  const value = String(clock.speed);
  if (![...speed.options].some((option) => option.value === value))
    speed.append(el('option', { value }, `Speed ×${value}`));
  // Setting it anew would close the list of a select that is open.
  if (speed.value !== value) speed.value = value;
  speed.disabled = clock.isManual;
  skip.disabled = clock.nextMs === undefined;
  beat();
}

/** Shows what the address names, the newest transfer, or the form. */
function show() {
  const [kind] = place();
  const isForm = kind === 'new' || (!shown && kind !== 'transfer');
  $('new').hidden = !isForm;
  $('transfer').hidden = isForm || !shown;
  $('unknown').hidden = isForm || Boolean(shown);
  if (isForm) showForm(total);
  else if (shown) showTransfer(shown);
  markRow(isForm ? undefined : shown?.id);
  /** @type {HTMLElement | null} */ const title = $('detail').querySelector('article:not([hidden]) h2');
  document.title = `${title?.textContent} · sandbox`;
  if (isFollowed) title?.focus();
  isFollowed = false;
}

window.addEventListener('hashchange', () => {
  const isListed = $('rows').contains(document.activeElement);
  connect();
  // In the list the arrow keys go on. Elsewhere, and where the list is hidden, reading begins at the title.
  isFollowed = !isListed || !$('list').checkVisibility();
});

function beat() {
  const { nextMs } = sandbox.clock;
  if (!sandbox.since) return;
  write($('time'), clockTime(sandbox.now()));
  write($('skip-due'), nextMs === undefined ? '' : ` · ${duration(Math.max(0, nextMs - sandbox.now()))}`);
  tick();
}

const skipToNext = () => press(skip, 'advance', {});

/** @type {Record<string, () => unknown>} */
const actions = {
  n: () => (location.hash = '#/new'),
  r: resend,
  s: skipToNext,
  '/': () => $('find').focus(),
  '?': () => $('keys').togglePopover(),
};

/** What takes letters itself. */
const fields = 'input:not([type=radio]), select, textarea';
document.addEventListener('keydown', (event) => {
  const { target, key, ctrlKey, altKey, metaKey } = event;
  const action = actions[key];
  if (!(target instanceof Element) || target.matches(fields) || ctrlKey || altKey || metaKey || !action) return;
  // Elsewhere a letter may be meant for a program that reads the page aloud.
  if (key !== '?' && !target.closest('main')) return;
  event.preventDefault();
  action();
});

$('list').addEventListener('input', connect);
skip.addEventListener('click', skipToNext);
speed.addEventListener('change', () => press(speed, 'speed', { speed: Number(speed.value) }));
clear.addEventListener('click', () => {
  if (confirm('Forget all transfers, and what is due for them?')) void press(clear, 'clear', {});
});
/** @type {NodeListOf<HTMLButtonElement>} */ const leaps = document.querySelectorAll('[data-ms]');
leaps.forEach((leap) => leap.addEventListener('click', () => press(leap, 'advance', { ms: Number(leap.dataset.ms) })));
// A browser has six connections to a host: a hidden page must not hold one.
document.addEventListener('visibilitychange', () => (document.hidden ? stream?.close() : connect()));
setInterval(beat, 250);
connect();
