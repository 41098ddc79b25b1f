import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { outcomes } from '../../src/core/outcomes.js';
import { metrics } from '../../src/metrics/table.js';
import { receiverOf } from '../core/support.js';
import { publishRun, registerMetrics } from '../metrics/support.js';

const read = (path: string): string => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8');
const alerts = read('ops/alerts.yml');
const alertTests = read('ops/alerts.test.yml') + read('ops/alerts-days.test.yml');
const dashboardText = read('ops/dashboard.json');
const { panels } = JSON.parse(dashboardText) as { panels: readonly { targets: readonly { expr: string }[] }[] };
const runbook = read('docs/operations.md');
const reference = read('docs/logs-and-metrics.md');
const alertNames = [...alerts.matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name);
const headings = [...runbook.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) => heading);

/** The names of the series that a real registry prints once everything has happened. */
async function printedNames(): Promise<Set<string>> {
  const { series } = registerMetrics();
  await receiverOf().receive({}, { source: 'http' });
  publishRun({ pending: 1 }, new Date());
  return new Set([...(await series()).keys()].map((text) => text.replace(/\{.*/, '')));
}

describe.each([
  ['ops/alerts.yml', alerts],
  ['ops/alerts*.test.yml', alertTests],
  ['ops/dashboard.json', dashboardText],
  ['docs/logs-and-metrics.md', reference],
])('%s', (path, text) => {
  test('names only metrics that a registry prints', async () => {
    const printed = await printedNames();
    const named = [...new Set(text.match(/\btransfer_callbacks_\w+/g))];
    expect(named.length).toBeGreaterThanOrEqual(path.startsWith('docs') ? 10 : 5);
    // The page names a histogram, whose series end in `_bucket`, `_sum` and `_count`.
    expect(named.filter((name) => !printed.has(name) && !printed.has(`${name}_bucket`))).toEqual([]);
  });

  test('names only outcomes, sources and results that there are', () => {
    const known: Record<string, Set<string | undefined>> = {
      outcome: new Set(),
      event: new Set(),
      source: new Set(),
      result: new Set(),
    };
    for (const metric of Object.values(metrics)) {
      for (const labels of 'zeros' in metric ? metric.zeros : []) {
        for (const [label, value] of Object.entries(labels)) known[label]?.add(value);
      }
    }
    for (const [, label = '', values = ''] of text.matchAll(/\b(outcome|event|source|result)[=!]~?\\?"([\w|]+)\\?"/g)) {
      for (const value of values.split('|')) expect([...(known[label] ?? [])], `${label}="${value}"`).toContain(value);
    }
  });
});

describe('an alert', () => {
  test.each(alertNames)(
    '%s has a heading in the runbook, its own runbook_url and an incident that fires it',
    (name) => {
      expect(headings).toContain(name);
      const [rule = ''] = alerts.split('- alert: ').filter((each) => each.startsWith(`${name}\n`));
      expect(rule).toContain(`runbook_url: docs/operations.md#${name.toLowerCase()}\n`);
      expect(rule).toMatch(/severity: (critical|warning) /);
      expect(rule).toMatch(/summary: [A-Z].*\.\n/);
      expect(alertTests).toContain(`exp_samples: [{ labels: '{alertname="${name}"}', value: 1 }]`);
    },
  );

  test('fires at the values that the runbook lists', () => {
    const rows = [...runbook.matchAll(/^\| \[(\w+)\]\(#\w+\) \| (\w+) \| (.*) \| .* \|$/gm)];
    expect(rows.map(([, name]) => name)).toEqual(alertNames);
    for (const [, name = '', severity = '', condition = ''] of rows) {
      const [, rule = ''] = alerts.split(`- alert: ${name}\n`);
      const [own = ''] = rule.split('- alert: ');
      expect(own).toContain(`severity: ${severity} `);
      const listed = [...condition.matchAll(/`([^`]+)`/g)].map(([, value = '']) => value);
      expect(listed.filter((value) => !own.includes(value))).toEqual([]);
      const values =
        own.match(/(?<=[\])] )(?:>=?|==) [\d.]+(?: \* \d+)?$|(?<=\bfor: )\w+$|(?<=\[)\d+[mhd](?=\])/gm) ?? [];
      expect(
        values.filter((value) => !listed.includes(value)),
        name,
      ).toEqual([]);
    }
  });

  test('has the words of its log lines in the runbook, so that a search finds them', () => {
    const written = read('src/core/outcomes.ts');
    const cells = [...runbook.matchAll(/^\| \[Transfer\w+\]\(#\w+\) \|.*\| (.*) \|$/gm)].map(([, cell = '']) => cell);
    const quoted = cells.flatMap((cell) => [...cell.matchAll(/"([^"]+)"/g)].map(([, words = '']) => words));
    expect(quoted.length).toBeGreaterThanOrEqual(14);
    expect(quoted.filter((words) => !written.includes(words))).toEqual([]);
  });

  test('has an alert for every heading that is named as one', () => {
    expect(headings.filter((heading) => /^Transfer[A-Z]\w+$/.test(heading)).sort()).toEqual(alertNames.toSorted());
    expect(alertNames).toHaveLength(14);
  });
});

test('every outcome for which a person must act is counted by an alert, and every outcome has a colour in the dashboard', () => {
  const counted = [...alerts.matchAll(/outcome=~?"([\w|]+)"/g)].flatMap(([, names = '']) => names.split('|'));
  const errors = Object.entries(outcomes).flatMap(([name, { level }]) => (level === 'error' ? [name] : []));
  expect(errors.filter((name) => !counted.includes(name))).toEqual([]);
  const coloured = [...dashboardText.matchAll(/"options": "(\w+)"/g)].map(([, name]) => name);
  expect(Object.keys(outcomes).filter((name) => !coloured.includes(name))).toEqual([]);
});

test('the metrics of docs/logs-and-metrics.md are those of the package, with their types and labels', () => {
  const rows = reference.split('\n').filter((line) => line.startsWith('| `transfer_callbacks_'));
  const documented = rows.map((row) => row.split('|').map((cell) => cell.trim().replaceAll('`', '')));
  expect(documented.map(([, name, kind, labels]) => [name, kind, labels])).toEqual(
    Object.values(metrics).map(({ prometheus, kind, labels }) => [prometheus, kind, labels.join(', ')]),
  );
});

describe('the dashboard', () => {
  test('asks for the chosen job in every selector', () => {
    const queries = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
    const selectors = queries.flatMap((query) => query.match(/transfer_callbacks_\w+(\{[^}]*\})?/g) ?? []);
    expect(selectors.length).toBeGreaterThan(10);
    expect(selectors.filter((selector) => !selector.includes('{job=~"$job"'))).toEqual([]);
  });
});
