/** Finds an element of index.html. @type {Find} */
export const $ = (id) => /** @type {any} */ (document.getElementById(id));

/** Shows characters as their numbers that would change how a line is displayed. @param {string} text */
const printable = (text) =>
  text.replace(/(?![\t\n])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (each) => `\\u{${each.codePointAt(0)?.toString(16)}}`);

/** Makes an element. A string among the children becomes text, never HTML. @type {Make} */
export const el = (tag, props = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) element.setAttribute(name, String(value));
  element.append(...children.map((child) => (typeof child === 'string' ? printable(child) : child)));
  return element;
};

/** Writes text that has changed: a selection stays. @param {Element} element @param {string} text */
export function write(element, text) {
  const shown = printable(text);
  if (element.textContent !== shown) element.textContent = shown;
}

/** Scrolls a field to the end of its text: of an address that is the part that differs. @param {HTMLInputElement} field */
export function showEnd(field) {
  if (document.activeElement !== field) field.scrollLeft = field.scrollWidth;
}

/** @param {string} text */
export const say = (text) => write($('status'), text);

/** @param {number} ms */
export const clockTime = (ms, length = 8) => new Date(ms).toISOString().slice(11, 11 + length);

/** @param {number} ms */
export function duration(ms) {
  const seconds = Math.ceil(ms / 1_000);
  const rest = seconds % 60 ? ` ${seconds % 60} s` : '';
  return seconds < 100 ? `${seconds} s` : `${Math.floor(seconds / 60)} min${rest}`;
}

/** The last message of the stream about the sandbox. Its time runs on between two messages. */
export const sandbox = {
  settings: /** @type {Settings} */ ({}),
  clock: /** @type {Clock} */ ({}),
  since: 0,
  now: () => sandbox.clock.nowMs + (performance.now() - sandbox.since) * sandbox.clock.speed,
};

/** A countdown that `tick` keeps, and for a screen reader the time itself. @param {number} dueMs */
export function due(dueMs) {
  const counting = el('span', { 'aria-hidden': true, 'data-due': dueMs });
  writeDue(counting);
  return el('span', {}, el('span', { class: 'unseen' }, `at ${clockTime(dueMs)}`), counting);
}

/** @param {HTMLElement} element */
function writeDue(element) {
  const leftMs = Number(element.dataset.due) - sandbox.now();
  write(element, leftMs > 0 ? `in ${duration(leftMs)}` : 'now');
}

export function tick() {
  /** @type {NodeListOf<HTMLElement>} */ const counting = document.querySelectorAll('[data-due]');
  counting.forEach(writeDue);
}

/** Calls the sandbox. Without a body it is a GET. @type {Call} */
export async function call(path, body, headers) {
  const init = body ? { method: 'POST', body: JSON.stringify(body) } : {};
  try {
    const response = await fetch(path, { ...init, headers: { 'Content-Type': 'application/json', ...headers } });
    const text = await response.text();
    const reply = JSON.parse(text || '{}');
    const shown = `${response.status}\n${JSON.stringify(reply, null, 2)}`;
    return { text: shown, data: reply.data, error: response.ok ? '' : reply.message };
  } catch {
    return { error: 'The sandbox does not respond.' };
  }
}

/** Calls the sandbox for a button, once at a time. @type {Press} */
export async function press(button, path, body) {
  if (button.disabled || button.ariaDisabled) return;
  button.ariaDisabled = 'true'; // `disabled` would lose the focus.
  const { error } = await call(path, body);
  button.ariaDisabled = null;
  if (error) say(error);
}

document.addEventListener('click', async ({ target }) => {
  if (!(target instanceof HTMLElement && target.matches('.copy'))) return;
  try {
    await navigator.clipboard.writeText(target.dataset.text ?? target.previousElementSibling?.textContent ?? '');
    say('Copied.');
  } catch {
    say('Not copied: browsers allow it at localhost, 127.0.0.1, https.');
  }
});
