import { $, call, el, showEnd, write } from './dom.js';
import { toCurl } from './words.js';

/** @type {HTMLFormElement} */ const form = $('form');
/** @param {string} name @returns {HTMLInputElement} */
const field = (name) => /** @type {HTMLInputElement} */ (form.elements.namedItem(name));
/** @type {HTMLInputElement[]} */ let radios = [];
let total = 0;
let apiKey = '';
/** Otherwise the externalId follows the scenario. */
let isTyped = false;

/** The headers of the merchant. */
export const credentials = () => ({ 'x-api-key': apiKey, 'x-api-secret': field('secret').value });

/** @param {Settings} settings */
export function setUpForm(settings) {
  const { apiSecret, callbackUrl, hasCallbackUrl, scenarios } = settings;
  apiKey = settings.apiKey;
  write($('base'), location.origin);
  write($('key'), apiKey);
  write($('secret'), apiSecret ?? 'not shown to other machines');
  // The default is not a secret.
  $('secret-box').toggleAttribute('open', apiSecret === 'sandbox-secret');
  $('secret-show').hidden = apiSecret === 'sandbox-secret';
  $('secret-field').hidden = apiSecret !== null;
  field('secret').value = apiSecret ?? '';
  field('callbackUrl').value = callbackUrl ?? (hasCallbackUrl ? '' : 'http://127.0.0.1:3000/callbacks/transfers');
  radios = scenarios.map(({ name }) => el('input', { type: 'radio', name: 'scenario', value: name }));
  const labels = scenarios.map(({ name, description }, at) =>
    el('label', {}, radios[at] ?? '', el('b', {}, name), el('span', {}, description)),
  );
  $('scenarios').replaceChildren(el('legend', {}, 'Scenario'), ...labels);
  if (radios[0]) radios[0].checked = true;
}

/** @param {number} count how many transfers there are */
export function showForm(count) {
  total = count;
  write($('new-title'), total === 0 ? 'No transfers yet' : 'New transfer');
  const chosen = radios.find(({ checked }) => checked);
  if (chosen && !isTyped) field('externalId').value = `${chosen.value}-${total + 1}`;
  const headers = { 'Content-Type': 'application/json', ...credentials() };
  const command = toCurl(`${location.origin}/transactions/transfer`, headers, JSON.stringify(toBody()));
  write($('curl'), command);
  showEnd(field('callbackUrl'));
  $('copy-curl').dataset.text = command;
}

function toBody() {
  const { externalId, amount, currency, callbackUrl } = Object.fromEntries(new FormData(form));
  return { externalId, amount: Number(amount), currency, ...(callbackUrl && { callbackUrl }) };
}

form.addEventListener('input', ({ target }) => {
  if (target instanceof HTMLInputElement)
    isTyped = target.name === 'externalId' || (isTyped && target.type !== 'radio');
  // The beginning of an externalId chooses the scenario.
  const name = `${field('externalId').value}-`;
  if (isTyped) for (const radio of radios) radio.checked = name.startsWith(`${radio.value}-`);
  showForm(total);
});

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  const body = toBody();
  const { value: many = '' } = /** @type {HTMLButtonElement} */ (event.submitter);
  const chosen = radios.find(({ checked }) => checked)?.value ?? String(body.externalId);
  const names = many === 'each' ? radios.map(({ value }) => value) : Array(Number(many)).fill(chosen);
  const before = total;
  const externalIds = many ? names.map((name, at) => `${name}-${before + at + 1}`) : [body.externalId];
  let id = '';
  for (const externalId of externalIds) {
    const { data, error } = await call('/transactions/transfer', { ...body, externalId }, credentials());
    write($('error'), error);
    if (!data) return;
    id = data.id;
  }
  isTyped = false;
  location.hash = many ? '#/' : `#/transfer/${id}`;
});
