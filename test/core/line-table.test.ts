import { expect, test } from 'vitest';
import { TimerQueue } from '../../src/core/timers.js';
import { LineTable, WaitingLine } from '../../src/core/waiting-line.js';
import fc from '../support/fast-check.js';

const waits = new TimerQueue(1_000);

/** Ids that share a chain of the table: 31 × 'A' + 'a' is 31 × 'B' + 'B', for each pair of characters. */
const ids = ['AaAa', 'AaBB', 'BBAa', 'BBBB', 'another'];

test('the table of lines finds what a Map would find, also ids that share a chain', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...ids), { maxLength: 30 }), (steps) => {
      const [table, map] = [new LineTable(), new Map<string, WaitingLine>()];
      for (const id of steps) {
        const line = map.get(id);
        if (line === undefined) {
          const added = new WaitingLine(id, waits, () => undefined);
          map.set(id, added);
          table.add(added);
        } else {
          map.delete(id);
          table.delete(line);
        }
        for (const each of ids) expect(table.find(each)).toBe(map.get(each));
        expect(new Set(table.all())).toEqual(new Set(map.values()));
      }
    }),
  );
});
