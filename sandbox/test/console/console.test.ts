import { expect, test } from 'vitest';
import { urlToken } from 'transfer-callbacks';
import { transferSandbox, transferScenarios } from 'transfer-sandbox';
import { create, startMerchant, startSandbox } from '../service/support.js';
import { openConsole, rows, shows, skip, startCallbacks } from './support.js';

test('a transfer is created with the form, and is seen to become acknowledged', async () => {
  const sandbox = await startSandbox({ callbackUrl: await startCallbacks(), finalAfterMs: 0 });
  const page = await openConsole(sandbox);
  await page.getByRole('heading', { name: 'No transfers yet' }).waitFor();
  await page.getByRole('radio', { name: /^failed/ }).check();
  expect(await page.getByLabel('externalId').inputValue()).toBe('failed-1');
  await page.getByRole('button', { name: 'Create' }).click();
  await shows(page, 'Your handler ran and succeeded.');
  expect(await rows(page)).toEqual([expect.stringMatching(/^failed-1\s+FAILED\s+✓ acknowledged, attempt 1/)]);
  expect(sandbox.transfers()).toMatchObject([{ externalId: 'failed-1', delivered: true }]);
  expect(await page.title()).toContain('failed-1');
});

test('a transfer is resent and contradicted, with both sides of the conflict', async () => {
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: await startCallbacks() });
  await create(sandbox, { externalId: 'success-1' });
  await sandbox.advance(1_000);
  const page = await openConsole(sandbox);
  await page.getByRole('button', { name: 'Resend' }).click();
  await shows(page, 'Handled before: your handler did not run again.');
  const questions: string[] = [];
  page.on('dialog', (dialog) => {
    questions.push(dialog.message());
    void (questions.length === 1 ? dialog.dismiss() : dialog.accept());
  });
  await page.getByRole('button', { name: 'Contradict' }).click();
  await page.getByRole('button', { name: 'Contradict' }).click();
  await shows(page, '422');
  expect(questions).toEqual(Array(2).fill(expect.stringContaining('Send FAILED under the same id?')));
  expect(await page.getByRole('row', { name: 'Handled before' }).innerText()).toMatch(
    /SUCCESS\s+15000 XAF\s+success-1/,
  );
  expect(await page.getByRole('row', { name: 'Sent now' }).innerText()).toMatch(/FAILED\s+15000 XAF\s+success-1/);
  expect(sandbox.attempts).toHaveLength(3);
});

test('a transfer is queried as a merchant does, and shows its payload', async () => {
  const sandbox = await startSandbox({ clock: 'manual' });
  await create(sandbox, { externalId: 'query-fails-1' });
  await sandbox.advance(1_000);
  const page = await openConsole(sandbox);
  const response = page.locator('#response');
  for (const expected of ['500', '500', '200']) {
    await page.getByRole('button', { name: 'Query' }).click();
    await response.getByText(new RegExp(`^${expected}\n`)).waitFor();
    await expect
      .poll(async () => (await page.locator('#timeline li').allInnerTexts()).join())
      .toMatch(expected === '200' ? 'queried\nSUCCESS' : 'queried\n500');
  }
  await shows(page, '500, 2 times');
  await page.getByText('Payload').click();
  expect(await page.locator('#payload').inputValue()).toContain('"event": "transfer.success"');
});

test('a payload is changed and sent as a forgery, with a verdict and the response beside it', async () => {
  const token = 'sixteen-letters-';
  const callbackUrl = `${await startCallbacks({ verify: urlToken(token) })}/${token}`;
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl });
  await create(sandbox, { externalId: 'success-1' });
  await sandbox.advance(1_000);
  const page = await openConsole(sandbox);
  await page.getByText('Payload').click();
  const payload = page.getByLabel('Payload');
  const address = page.getByLabel('Send to');
  const send = async (reason: RegExp, verdict: string, advice: string) => {
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await page.locator('#refusal').getByText(reason).waitFor();
    expect(await page.locator('#verdict').innerText()).toBe(verdict);
    expect(await page.locator('#advice').innerText()).toContain(advice);
  };
  expect(await address.inputValue()).toBe(sandbox.transfers()[0]?.callbackUrl);
  const text = await payload.inputValue();
  await send(/^200\n[^]*duplicate/, '◌ Your app acknowledged it, and it is true.', 'Change one');
  await payload.fill(text.replace('15000', '9915000'));
  await send(/^422\n/, '– This is not a verdict about the sender.', 'never acknowledged');
  const forged = text.replace(/"id": ".*"/, '"id": "an-id-of-a-forger"');
  await payload.fill(forged);
  await send(/^200\n[^]*processed/, '✗ Your app acknowledged a forgery.', 'Does the address hold a token? Change it');
  expect(await page.locator('#verdict').getAttribute('class')).toBe('bad');
  await address.fill((await address.inputValue()).replace(`/${token}`, ''));
  await send(/^401\n[^]*"message":"The sender is not verified\./, '✓ Your app did not believe it.', '');
  await payload.fill(text.slice(0, -9));
  await payload.pressSequentially('nrs/');
  expect(await payload.inputValue()).toBe(`${text.slice(0, -9)}nrs/`);
  expect(sandbox.attempts).toHaveLength(1);
  await address.fill('http://127.0.0.1:1/');
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await page.locator('#verdict').getByText('a URL of the origin of the callback URL').waitFor();
  expect(await page.locator('#refusal').isVisible()).toBe(false);
  // The verdict is gone with the payload that it is about.
  await create(sandbox, { externalId: 'success-2' });
  await sandbox.advance(1_000);
  await expect.poll(() => payload.inputValue()).toContain('success-2');
  expect(await page.locator('#forged').isVisible()).toBe(false);
});

test('characters that turn the direction of a text or hide in it are shown as their numbers', async () => {
  const { url } = await startMerchant((_received, _count, response) => response.writeHead(500).end('a\u200bb\nc'));
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url });
  await create(sandbox, { externalId: 'pay-\u202e1-hcus', provider: 'M\u2066TN' });
  await sandbox.advance(1_000);
  const page = await openConsole(sandbox);
  await shows(page, '500');
  expect(await page.locator('#name').innerText()).toBe('pay-\\u{202e}1-hcus');
  expect(await rows(page)).toEqual([expect.stringMatching(/^pay-\\u\{202e\}1-hcus\s/)]);
  expect(await page.locator('#facts').innerText()).toContain('M\\u{2066}TN');
  expect(await page.locator('#timeline pre').last().innerText()).toMatch(/\n\na\\u\{200b\}b\nc$/);
  expect(await page.title()).toBe('pay-\\u{202e}1-hcus SUCCESS · sandbox');
  for (const name of ['#name', '#rows a']) {
    const style = `getComputedStyle(document.querySelector('${name}'))`;
    expect(await page.evaluate(`${style}.unicodeBidi`)).toBe('isolate');
  }
});

test('the form keeps a name that was typed, which chooses the scenario, and shows why a creation is refused', async () => {
  const sandbox = await startSandbox({ clock: 'manual' });
  const page = await openConsole(sandbox);
  await page.getByLabel('externalId').fill('flip-9');
  expect(await page.getByRole('radio', { name: 'flip' }).isChecked()).toBe(true);
  await page.getByLabel('externalId').fill('order-9');
  expect(await page.getByRole('radio', { checked: true }).count()).toBe(0);
  await page.getByLabel('Callbacks go to').fill('http://example.com/');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('alert').getByText('Expected `callbackUrl` to be a URL on this machine').waitFor();
  expect(await page.getByLabel('externalId').inputValue()).toBe('order-9');
  await page.getByText('The same as a command').click();
  expect(await page.locator('#curl').innerText()).toContain("-H 'x-api-key: sandbox-key'");
});

test('many transfers are created in a click, one of each scenario or 50 of one, and cleared', async () => {
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: await startCallbacks() });
  const page = await openConsole(sandbox);
  await page.getByRole('button', { name: 'One of each' }).click();
  await page.getByRole('heading', { name: 'Transfers (15)' }).waitFor();
  expect(sandbox.transfers().map(({ scenario, externalId }) => [scenario, externalId])).toEqual(
    transferScenarios.map(({ name }, index) => [name, `${name}-${index + 1}`]),
  );
  await page.getByRole('link', { name: 'New' }).click();
  await page.getByRole('radio', { name: /^burst/ }).check();
  await page.getByRole('button', { name: '50 like it' }).click();
  await page.getByRole('heading', { name: 'Transfers (65)' }).waitFor();
  await page.locator('#name').getByText('burst-65').waitFor();
  await page.getByRole('link', { name: 'New' }).click();
  await page.getByLabel('externalId').fill('order');
  await page.getByRole('button', { name: '50 like it' }).click();
  await page.locator('#name').getByText('order-115').waitFor();
  const answers = [false, true];
  page.on('dialog', (dialog) => void (answers.shift() === true ? dialog.accept() : dialog.dismiss()));
  await page.getByRole('button', { name: 'Clear' }).click();
  await page.getByRole('button', { name: 'Clear' }).click();
  await page.getByRole('heading', { name: 'Transfers (0)' }).waitFor();
  await page.getByRole('heading', { name: 'No transfers yet' }).waitFor();
  expect(await page.getByRole('button', { name: 'Clear' }).isDisabled()).toBe(true);
  expect([answers, sandbox.transfers(), await rows(page)]).toEqual([[], [], []]);
});

test('the clock is moved on by 30 s and by 10 minutes', async () => {
  const sandbox = await startSandbox({ clock: 'manual' });
  const page = await openConsole(sandbox);
  await page.getByRole('timer').getByText('10:30:00').waitFor();
  await page.getByRole('button', { name: '+30 s' }).click();
  await page.getByRole('timer').getByText('10:30:30').waitFor();
  await page.getByRole('button', { name: '+10 min' }).click();
  await page.getByRole('timer').getByText('10:40:30').waitFor();
  expect(await page.getByLabel('Speed of the clock').isDisabled()).toBe(true);
});

test('the clock is paused in two pages, and runs faster', async () => {
  const { url, received } = await startMerchant();
  const sandbox = await startSandbox({ speed: 5, callbackUrl: url, finalAfterMs: 3_600_000 });
  const [page, other] = [await openConsole(sandbox), await openConsole(sandbox)];
  const speeds = () => Promise.all([page, other].map((each) => each.getByLabel('Speed of the clock').inputValue()));
  expect(await speeds()).toEqual(['5', '5']);
  await page.getByLabel('Speed of the clock').selectOption('Paused');
  await expect.poll(speeds).toEqual(['0', '0']);
  await create(sandbox, { externalId: 'one' });
  await shows(other, 'in 60 min');
  await other.getByLabel('Speed of the clock').selectOption('Speed ×1000');
  await expect.poll(() => received).toHaveLength(1);
  await shows(page, 'acknowledged');
});

test('by keyboard all of it works, and the focus stays in its place through updates', async () => {
  const { url } = await startMerchant([500]);
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url });
  for (const externalId of ['one', 'two', 'three']) await create(sandbox, { externalId });
  const page = await openConsole(sandbox);
  const focused = () => page.evaluate<string>('document.activeElement.textContent || document.activeElement.id');
  const press = (key: string) => page.keyboard.press(key);
  // Outside the list and the details a letter does nothing.
  await press('n');
  await press('?');
  await page.getByText('Anywhere outside a field').waitFor();
  await press('?');
  expect(await page.locator('#keys').isVisible()).toBe(false);
  await page.locator('#name').getByText('three').waitFor();
  await page.locator('#list').focus();
  await press('ArrowDown');
  await press('ArrowDown');
  expect(await focused()).toBe('two');
  await press('Enter');
  await page.locator('#name').getByText('two').waitFor();
  await press('s');
  await expect.poll(() => sandbox.attempts).toHaveLength(3);
  await expect.poll(async () => (await rows(page)).filter((row) => row.includes('✓'))).toHaveLength(2);
  expect(await focused()).toBe('two');
  await press('r');
  await shows(page, 'resent');
  await press('ArrowUp');
  await press('ArrowUp');
  expect(await focused()).toBe('find');
  await page.locator('#detail').focus();
  await press('n');
  await page.getByRole('heading', { name: 'New transfer' }).waitFor();
  await expect.poll(focused).toBe('New transfer');
  await page.getByRole('radio', { name: /^flip/ }).focus();
  await press('/');
  expect(await focused()).toBe('find');
});

test('the stream comes back after the sandbox has restarted on its port, with the transfers of the new one', async () => {
  const first = await transferSandbox({ clock: 'manual' });
  await create(first, { externalId: 'of-the-first' });
  const page = await openConsole(first);
  await page.locator('#name').getByText('of-the-first').waitFor();
  await first.close();
  await page.getByText('◌ reconnecting').waitFor();
  await skip(page);
  await page.getByRole('status').getByText('The sandbox does not respond.').waitFor();
  const second = await startSandbox({
    port: Number(new URL(first.baseUrl).port),
    clock: 'manual',
    apiKey: 'new-key',
  });
  await create(second, { externalId: 'of-the-second' });
  await page.locator('#name').getByText('of-the-second').waitFor();
  expect(await rows(page)).toEqual([expect.stringContaining('of-the-second')]);
});

test('the stream is closed while the page is hidden, and opened again when it is shown', async () => {
  const sandbox = await startSandbox({ clock: 'manual' });
  const page = await openConsole(sandbox);
  const setHidden = (isHidden: boolean) =>
    page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'))`);
  const closed = page.waitForEvent('requestfailed', (request) => request.url().includes('/events'));
  await setHidden(true);
  await closed;
  await create(sandbox, { externalId: 'while-hidden' });
  expect(await rows(page)).toEqual([]);
  await setHidden(false);
  await page.locator('#name').getByText('while-hidden').waitFor();
});
