// npm run schedules [-- part of a title [seconds]]
// Follows the situations that take too long for a run of the tests: every one, or those whose title has the given part,
// each until no schedule is left or the seconds are over (default 600).
import { explore } from './explore.js';
import { everyRun, longRuns } from './situations.js';

const [part = '', seconds = '600'] = process.argv.slice(2);
const chosen = [...everyRun, ...longRuns].filter(({ title }) => title.includes(part));

console.log(
  '| situation | executions | states | schedules | longest | every one | succeeded twice | overtaken | seconds |',
);
console.log('| --- | --- | --- | --- | --- | --- | --- | --- | --- |');
for (const situation of chosen) {
  const limitMs = 1_000 * Number(seconds);
  const found = await explore(situation, { limitMs });
  const { executions, states, schedules, longest, twice, overtaken, isExhausted, tookMs } = found;
  const took = (tookMs / 1_000).toFixed(1);
  const cells = [executions, states, schedules, longest, isExhausted ? 'yes' : 'no', twice, overtaken, took];
  console.log(`| ${situation.title} | ${cells.join(' | ')} |`);
  if (found.violation === undefined) continue;
  const { violation = found.violation } = await explore(situation, { limitMs, isBreadthFirst: true });
  console.log(violation);
  process.exitCode = 1;
}
