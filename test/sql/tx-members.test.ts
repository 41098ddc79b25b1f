// What handlers can call on a `tx`, read from the objects themselves.
import { randomUUID } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import type { Claim } from 'transfer-callbacks';
import { expect, test } from 'vitest';
import { claimFree } from '../stores/support.js';
import { databases } from './databases.js';
import { describeDatabases } from './describe-databases.js';
import { makeStore } from './factories.js';
import { librariesOn } from './libraries.js';
import { members, type Members } from './tx-members.js';

type Thing = Readonly<Record<string, unknown>>;

/** What every object, function, emitter, map and promise has. */
const builtIn = [Object, Function, EventEmitter, Map, Promise].map(({ prototype }) => prototype as object);
const ofFunctions = ['length', 'name', 'prototype', 'arguments', 'caller'];
const common = new Set(['constructor', ...ofFunctions, ...Reflect.ownKeys(EventEmitter.prototype).map(String)]);

/** Returns the names of an object's own and inherited properties. Those that begin with `_` are the library's own. */
function listNames(value: object): string[] {
  const names = new Set<string | symbol>();
  for (let at: object | null = value; at !== null && !builtIn.includes(at); at = Reflect.getPrototypeOf(at)) {
    for (const name of Reflect.ownKeys(at)) names.add(name);
  }
  return [...names].filter(
    (name): name is string => typeof name === 'string' && !/^_./.test(name) && !common.has(name),
  );
}

const isThing = (value: unknown): value is Thing =>
  ((typeof value === 'object' && value !== null) || typeof value === 'function') && !Array.isArray(value);

function read(value: Thing, name: string): unknown {
  try {
    return value[name];
  } catch {
    // A getter that does not work on this object gives nothing to a handler either.
    return undefined;
  }
}

/** Returns the names of the methods and objects of `tx`, and those of its objects unless they lead away from it. */
function listMembers(tx: Thing, names: readonly string[], isOutside: (name: string) => boolean): string[] {
  return names.flatMap((name) => {
    const value = read(tx, name);
    if (!isThing(value)) return [];
    if (typeof value === 'function' || isOutside(name)) return [name];
    const inner = listNames(value).filter((each) => typeof read(value, each) === 'function');
    return [name, ...inner.map((each) => `${name}.${each}`)];
  });
}

const split = (list = ''): string[] => list.split(/\s+/).filter((name) => name !== '');
const matches = (list: string | undefined, name: string): boolean =>
  split(list).some((each) => (each.endsWith('*') ? name.startsWith(each.slice(0, -1)) : each === name));

/** Calls a method of `tx`, or of an object of it, without arguments. Resolves with its error, or with how it went. */
async function call(tx: Thing, path: string): Promise<unknown> {
  const [first = '', second] = path.split('.');
  try {
    const target = second === undefined ? tx : (tx[first] as Thing);
    const method = target[second ?? first];
    if (typeof method !== 'function') return 'missing';
    const reply: unknown = Reflect.apply(method, target, []);
    const replied = Promise.resolve(reply).then(() => 'resolved');
    return await Promise.race([replied.catch((error: unknown) => error), setTimeout(300, 'late')]);
  } catch (error) {
    return error;
  }
}

const tried = databases.filter(({ name }) => ['PostgreSQL 18', 'MariaDB'].includes(name));
describeDatabases(tried, ({ dialect }, server) => {
  for (const { name: library, open, prepare } of librariesOn(dialect, server)) {
    const known: Members = members[library] ?? { lent: '', harmless: '' };

    test(`every method and object of tx of ${library} is known`, async ({ onTestFinished }) => {
      const { client, store } = await prepare(onTestFinished, 1);
      const claim = await claimFree(store);
      const tx = claim.tx as Thing;
      // Prisma's proxy of a transaction lists no names. Knex's `tx` also builds queries.
      const names = new Set(listNames(library.startsWith('Prisma') ? (client as Thing) : tx));
      if (library === 'Knex') {
        const { queryBuilder } = tx as { readonly queryBuilder: () => object };
        for (const name of listNames(queryBuilder())) names.delete(name);
      }
      const all = Object.values(known).join(' ');
      const found = listMembers(tx, [...names], (name) => matches(known.outside, name));
      await claim.release();
      expect(found.length).toBeGreaterThan(2);
      expect(found.filter((name) => !matches(all, name))).toEqual([]);
    });

    test(`no method of tx of ${library} keeps the writes of a handler that fails`, async ({ onTestFinished }) => {
      let opened = await open(server.url, 2);
      onTestFinished(() => void opened.close());
      const begin = async (id: string): Promise<Claim<unknown>> => {
        const claim = await claimFree(makeStore({ name: library }, opened.client, dialect), {}, id);
        await opened.transaction?.write(claim.tx, id);
        return claim;
      };
      await makeStore({ name: library }, opened.client, dialect).migrate();
      const refused = split(known.refused);
      for (const name of [...refused, ...split(`${known.ignored} ${known.lent} ${known.harmless}`)]) {
        if (name.endsWith('*')) continue;
        const id = randomUUID();
        const claim = await begin(id);
        const ended = await call(claim.tx as Thing, name);
        if (refused.includes(name) && ended !== 'missing') expect([name, ended]).toMatchObject([name, control]);
        if (matches(known.ignored, name)) expect([name, ended]).toEqual([name, 'resolved']);
        const written = Promise.resolve(opened.transaction?.write(claim.tx, id)).catch(() => undefined);
        await Promise.race([written, setTimeout(1_000)]);
        await claim.release();
        expect([name, await opened.transaction?.count(id)]).toEqual([name, 0]);
        // A method may have closed the only connection of its client.
        if (!split(known.harmless).includes(name)) continue;
        void opened.close();
        opened = await open(server.url, 2);
      }
    });
  }
});

const control = { code: 'TRANSACTION_CONTROL' };
