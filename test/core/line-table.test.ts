import { expect, test } from 'vitest';
import { Line, LineTable } from '../../src/core/line.js';
import { TimerQueue } from '../../src/core/timers.js';
import fc from '../support/fast-check.js';

const waits = new TimerQueue(1_000);

/** Ids that share a chain of the table: 31 × 'A' + 'a' is 31 × 'B' + 'B', for each pair of characters. */
const colliding = ['AaAa', 'AaBB', 'BBAa', 'BBBB'];

test('the table of lines finds what a Map would find, also ids that share a chain', () => {
  const step = fc.record({ id: fc.constantFrom(...colliding, 'another'), deletes: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const [table, map] = [new LineTable(), new Map<string, Line>()];
      const gone = new Line('AaAa', waits);
      for (const { id, deletes } of steps) {
        const line = map.get(id);
        if (line === undefined) {
          map.set(id, new Line(id, waits));
          table.add(map.get(id) ?? gone);
        } else if (deletes) {
          map.delete(id);
          table.delete(line);
        }
        table.delete(gone); // It is not in the table.
        for (const each of [...colliding, 'another']) expect(table.get(each)).toBe(map.get(each));
        expect(new Set(table.all())).toEqual(new Set(map.values()));
      }
    }),
  );
});
