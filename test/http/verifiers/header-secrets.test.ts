import { describe, expect, test } from 'vitest';
import { basicAuth, headerToken } from 'transfer-callbacks';
import { roads } from '../../support/servers/http-servers.js';
import { startGuarded } from '../support.js';

const secret = 'first-secret-0123456789';
const older = 'older-secret-0123456789';

describe.each(roads)('on $name', (server) => {
  test('headerToken accepts its secret in its header, whatever the case of the name', async () => {
    const { url, admits, refuses, thrown } = await startGuarded(
      server,
      headerToken('X-Callback-Token', [secret, older]),
    );
    await admits(url, { headers: { 'x-callback-token': secret } });
    await admits(url, { headers: { 'X-CALLBACK-TOKEN': older } });
    await refuses(url);
    for (const value of ['', 'wrong', `${secret}x`, `Bearer ${secret}`, secret.toUpperCase(), `${secret}, ${older}`]) {
      await refuses(url, { headers: { 'X-Callback-Token': value } });
    }
    await refuses(url, { headers: { 'X-Callback-Token': [secret, secret] } });
    await refuses(url, { headers: { 'X-Other-Token': secret } });
    expect(thrown()).toEqual([]);
  });

  test('headerToken accepts every character that a header carries unchanged', async () => {
    const visible = String.fromCharCode(...Array.from({ length: 95 }, (_, at) => 32 + at)).trim();
    const { url, admits } = await startGuarded(server, headerToken('X-Token', visible));
    await admits(url, { headers: { 'X-Token': visible } });
  });

  test('headerToken does not read a property that every object has as a header', async () => {
    const { url, refuses } = await startGuarded(server, headerToken('constructor', secret));
    await refuses(url);
  });

  const encoded = (text: string): string => Buffer.from(text).toString('base64');
  const pairs = [
    { username: 'service', password: 'new-password: é 付' },
    { username: 'service', password: 'the-old-password' },
  ] as const;

  test('basicAuth accepts each of its pairs, and nothing else', async () => {
    const { url, admits, refuses, thrown } = await startGuarded(server, basicAuth(pairs));
    for (const { username, password } of pairs) {
      const token = encoded(`${username}:${password}`);
      for (const scheme of ['Basic', 'basic', 'BASIC', 'Basic  ']) {
        await admits(url, { headers: { Authorization: `${scheme} ${token}` } });
      }
    }
    for (const authorization of [
      undefined,
      '',
      'Basic',
      'Basic ',
      'Basic !!!!',
      `Basic ${encoded('service:wrong')}`,
      `Basic ${encoded('service')}`,
      `Basic ${encoded('service:')}`,
      `Basic ${encoded(':the-old-password')}`,
      `Basic ${encoded('Service:the-old-password')}`,
      `Basic ${encoded('service:the-old-password ')}`,
      `Basic ${encoded('service:the-old-password')} x`,
      `Bearer ${encoded('service:the-old-password')}`,
      `x Basic ${encoded('service:the-old-password')}`,
      'service:the-old-password',
      encoded('service:the-old-password'),
    ]) {
      await refuses(url, { headers: { Authorization: authorization } });
    }
    expect(thrown()).toEqual([]);
  });
});
