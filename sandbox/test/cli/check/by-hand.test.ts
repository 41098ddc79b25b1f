// What a careful reader writes by hand for each service of the package gets neither ✗ nor `!`.
import { expect, test } from 'vitest';
import { byHand, serveByHand } from './by-hand.js';
import { checkNamed, key, privateKeys, publicUrl } from './defined-support.js';
import { makeBooks } from './support.js';

const withToken = ['mtn', 'mpesa', 'cinetpay'];

test.each(Object.keys(byHand))(
  'an endpoint by hand for %s is right, and nothing of it is less strict',
  async (name) => {
    const { book, commands } = await makeBooks();
    const url = await serveByHand(name, book);
    const [to, forged] = withToken.includes(name) ? [`${url}/${key}`, ['--forged', `${url}/another`]] : [url, []];
    const env = { CALLBACK_SECRET: privateKeys[name] ?? key, PAWAPAY_CALLBACK_URL: publicUrl };
    const checked = await checkNamed(name, to, [...forged, ...commands], env);
    expect(checked).toMatchObject({ code: 0, wrong: [], less: [], err: '' });
    expect([checked.trial('forged')?.verdict, checked.trial('handler-fails')?.verdict]).toEqual(['right', 'right']);
  },
);
