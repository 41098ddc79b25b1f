import { expect, test } from 'vitest';
import { transferToken } from 'transfer-callbacks';
import { transferSandbox } from 'transfer-sandbox';
import { create, startReceiver, startSandbox } from './support.js';

test('a wrong option is refused with what was expected', async () => {
  const wrong: [string, object][] = [
    ['Unknown option `speeed`', { speeed: 1 }],
    ['Expected `port` to be a whole number from 0 to 65535, got -1', { port: -1 }],
    ['Expected `host` to be a host name or address, got ""', { host: '' }],
    ['Expected `host` to be a host name or address, got a string of 17 characters', { host: 'https://ada:pw@db' }],
    ['Expected `apiKey` to be visible ASCII characters without spaces, got a string of 3', { apiKey: 'a b' }],
    ['Expected `apiSecret` to be visible ASCII characters without spaces, got a number', { apiSecret: 7 }],
    ['Expected `callbackUrl` to be a URL, got a string', { callbackUrl: 'x' }],
    ['`allowOtherHosts` to be set, got a string', { callbackUrl: 'http://example.com' }],
    ['Expected `callbackHeaders` to be an object of names and values', { callbackHeaders: ['a: b'] }],
    ['Expected `finalAfterMs` to be a whole number', { finalAfterMs: 0.5 }],
    ['Expected `speed` to be a number above 0, up to 1000000, got 0', { speed: 0 }],
    ['Expected `speed` to be left out', { speed: 2, clock: 'manual' }],
    ['Expected `clock` to be "manual" if given, got "real"', { clock: 'real' }],
    ['Expected `attemptTimeoutMs` to be a whole number from 1', { attemptTimeoutMs: 0 }],
    ['Expected `seed` to be a whole number from 0 to 4294967295', { seed: -1 }],
    ['Expected `scenario` to be one of success, failed', { scenario: 'toString' }],
    ['Expected `allowOtherHosts` to be true or false, got "yes"', { allowOtherHosts: 'yes' }],
    ['Expected `onAttempt` to be a function', { onAttempt: {} }],
  ];
  for (const [message, options] of wrong) {
    await expect(transferSandbox(options)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining(message) as string,
    });
  }
});

test('setScenario accepts only a known scenario and a transfer that does not exist yet', async () => {
  const sandbox = await startSandbox({ clock: 'manual' });
  await create(sandbox, { externalId: 'there' });
  expect(() => {
    sandbox.setScenario('there', 'burst');
  }).toThrow('Expected `externalId` to be of a transfer that has not been created yet, got "there".');
  expect(() => {
    sandbox.setScenario('new', 'nonsense' as 'burst');
  }).toThrow('Expected `scenario` to be one of');
});

test('a sandbox that listens at localhost is reached there', async () => {
  const sandbox = await startSandbox({ host: 'localhost' });
  expect(new URL(sandbox.baseUrl).hostname).toBe('localhost');
  expect((await create(sandbox, {})).status).toBe(201);
});

test('callbackUrl may be a function of the externalId, such as urlFor of transferToken', async () => {
  const tokens = transferToken('the-secret-of-the-transfers');
  const url = await startReceiver({ verify: tokens });
  const callbackUrl = (externalId: string) => tokens.urlFor(url, externalId);
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl });
  for (const externalId of ['one', 'two']) await create(sandbox, { externalId });
  await create(sandbox, {});
  await sandbox.advance(1_000);
  expect(sandbox.attempts.map(({ reason }) => reason)).toEqual(['processed', 'processed', 'processed']);
});

test('the result of a function for callbackUrl is checked, and its error becomes a 500', async () => {
  const elsewhere = await startSandbox({ clock: 'manual', callbackUrl: () => 'http://203.0.113.7/' });
  expect((await create(elsewhere, {})).body).toMatchObject({
    statusCode: 400,
    message: expect.stringContaining('to return') as string,
  });
  const throwing = await startSandbox({
    clock: 'manual',
    callbackUrl: () => {
      throw new Error('No address');
    },
  });
  expect((await create(throwing, {})).body).toMatchObject({ statusCode: 500, message: 'Error: No address' });
  expect([...elsewhere.transfers(), ...throwing.transfers()]).toEqual([]);
});
