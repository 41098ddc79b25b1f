import { credentials } from './create.js';
import { $, call, press, sandbox, showEnd, write } from './dom.js';
import { showTimeline } from './timeline.js';
import { signs, toName, toResponse } from './words.js';

let id = '';
/** @type {HTMLButtonElement} */ const resendButton = $('resend');
/** @type {HTMLButtonElement} */ const contradictButton = $('contradict');
let other = '';

/** @type {HTMLTextAreaElement} */ const payload = $('payload');
/** @type {HTMLInputElement} */ const to = $('to');

/** @type {ForTransfer<void>} */
export function showTransfer(transfer) {
  const { externalId, scenario, state, stateInWords, callback, callbackUrl } = transfer;
  if (id !== transfer.id) $('query-box').hidden = true;
  id = transfer.id;
  const description = sandbox.settings.scenarios.find(({ name }) => name === scenario)?.description;
  const { amount, currency, paymentMethod, provider, failureReason } = callback?.data ?? {};
  const facts = [`${amount?.toLocaleString('fr')} ${currency}`, paymentMethod, provider, failureReason];
  const texts = {
    ...{
      id,
      state: stateInWords,
      name: toName(externalId),
      scenario: `${scenario}: ${description}`,
      url: callbackUrl ?? 'nobody',
    },
    facts: callback ? facts.filter(Boolean).join(' · ') : 'not final yet',
  };
  for (const [name, text] of Object.entries(texts)) write($(name), text);
  const text = JSON.stringify(callback, null, 2) ?? '';
  // What is typed stays until another outcome is shown.
  if (payload.defaultValue !== text) {
    payload.defaultValue = payload.value = text;
    to.value = callbackUrl ?? '';
    $('forged').hidden = true;
  }
  other = state === 'SUCCESS' ? 'FAILED' : 'SUCCESS';
  resendButton.disabled = contradictButton.disabled = !callback || !callbackUrl;
  $('payload-box').hidden = !callback;
  showTimeline(transfer);
}

export const resend = () => press(resendButton, 'resend', { id });

resendButton.addEventListener('click', resend);
contradictButton.addEventListener('click', () => {
  const question = `Send ${other} under the same id? A correct app responds 422 and does nothing.`;
  if (confirm(question)) void press(contradictButton, 'contradict', { id });
});

// The merchant's own query, which the scenario may let fail.
$('query').addEventListener('click', async () => {
  const { text, error } = await call(`/transactions/${id}`, undefined, credentials());
  write($('response'), text ?? error);
  $('query-box').hidden = false;
  $('query-box').setAttribute('open', '');
});

$('payload-box').addEventListener('toggle', () => showEnd(to));
$('forgery').addEventListener('submit', async (event) => {
  event.preventDefault();
  const { data, error } = await call('forge', { id, url: to.value, body: payload.value });
  $('forged').hidden = false;
  $('verdict').className = data?.tone ?? 'none';
  write($('verdict'), data ? `${signs[data.tone]} ${data.text}` : error);
  write($('advice'), data?.hint ?? '');
  $('refusal').hidden = !data;
  if (data) write($('refusal'), toResponse(data.response));
  $('forged').scrollIntoView({ block: 'nearest' });
});
