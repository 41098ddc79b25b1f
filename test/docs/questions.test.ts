// What a newcomer asks, and the section in which the word of the question is found.
import { expect, test } from 'vitest';
import { readText } from './pages.js';

const questions: readonly [question: string, word: string, path: string, heading: string][] = [
  ['What do I install?', 'npm install', 'README.md', 'Try it'],
  ['Is there a header with a signature?', 'signature', 'docs/security.md', 'A signed body'],
  ['Why does every callback get 401?', '401', 'docs/errors.md', 'The response of your endpoint'],
  ['It got 200, and where is my handler?', 'my handler was not called', 'docs/errors.md', 'What you see in your books'],
  ['What if a rate limit stands in front?', 'rate limit', 'docs/errors.md', 'The response of your endpoint'],
  ['How long must a secret be?', '16 characters', 'docs/security.md', 'Verifiers'],
  ['How do I rotate a secret?', 'rotate', 'docs/security.md', 'Replacing a secret'],
  ['Which Node, which Express?', 'Node 20', 'README.md', 'Try it'],
  ['Does it work in CommonJS?', 'CommonJS', 'README.md', 'Try it'],
  ['How do I mount it on Next.js?', 'instrumentation.ts', 'docs/hosts.md', 'Next.js'],
  ['And on NestJS?', 'NestJS', 'docs/hosts.md', 'Frameworks'],
  ['And on Lambda?', 'Lambda', 'docs/hosts.md', 'AWS Lambda'],
  ['Who reconciles on Lambda?', 'reconciliation', 'docs/hosts.md', 'AWS Lambda'],
  ['How do I get metrics of a Lambda?', 'metrics', 'docs/hosts.md', 'AWS Lambda'],
  ['Which process holds what, on Lambda and Next.js?', 'process', 'docs/hosts.md', 'Serverless'],
  ['And on Workers?', 'Worker', 'docs/hosts.md', 'Cloudflare Workers'],
  ['Which settings does Redis need?', 'settings', 'docs/stores.md', 'Redis in production'],
  ['How does Prisma write in the same transaction?', 'Prisma', 'docs/stores.md', 'SQL'],
  ['Which isolation level may MySQL have?', 'isolation', 'docs/stores.md', 'In production'],
  ['How often does a handler that throws run again?', 'throws', 'docs/handlers.md', 'When a handler fails'],
  ['What if the process is killed in the middle?', 'killed', 'docs/stores.md', 'What a crash does'],
  ['What does SIGTERM do?', 'SIGTERM', 'docs/hosts.md', 'Shutdown'],
  ['Where is payout 8841?', 'payout-8841', 'docs/operations.md', 'Where is payout X?'],
  ['What if a callback never comes?', 'never comes', 'docs/reconciliation.md', 'Reconciling'],
  ['What if FAILED contradicts a SUCCESS?', 'contradicts', 'docs/operations.md', 'TransferConflict'],
  ['How do I test with supertest?', 'supertest', 'sandbox/README.md', 'Test runners'],
  ['Does it work with jest?', 'jest', 'sandbox/README.md', 'Test runners'],
  ['Does it work with node:test?', 'node:test', 'sandbox/README.md', 'Test runners'],
  ['Which context does a handler get in its unit test?', 'context', 'sandbox/README.md', 'A handler alone'],
  ['What is in responses of deliver?', 'the status of each attempt', 'sandbox/README.md', 'In tests'],
  [
    'How does the service reach my laptop: a tunnel?',
    'tunnel',
    'sandbox/README.md',
    'From the service to your machine',
  ],
  ['Which alerts are there, and from which value?', 'fires', 'docs/operations.md', 'The alerts'],
  ['Which personal data is kept?', 'personal data', 'docs/security.md', 'Personal data'],
  ['What do I redact in pino?', 'pino', 'docs/logs-and-metrics.md', 'Logs'],
  ['How do I purge old records?', 'purge', 'docs/stores.md', 'In production'],
  ['What may an upgrade change?', 'minor', 'CHANGELOG.md', 'Changelog'],
  ['What does this code of an error mean?', '`code`', 'docs/errors.md', 'Errors'],
];

/** Returns a section, from its heading to the next one of its level or above. */
function findSection(path: string, heading: string): string {
  const lines = readText(path).split('\n');
  const start = lines.findIndex((line) => /^#+ /.test(line) && line.replace(/^#+ /, '') === heading);
  if (start === -1) expect.fail(`${path} has no heading ${heading}.`);
  const level = /^#+/.exec(lines[start] ?? '')?.[0].length ?? 0;
  const rest = lines.slice(start + 1);
  // The heading of a page has the text before the first section.
  const end = rest.findIndex((line) => new RegExp(`^#{1,${Math.max(level, 2)}} `).test(line));
  return [lines[start], ...(end === -1 ? rest : rest.slice(0, end))].join('\n');
}

test.each(questions)('%s The word "%s" is in %s, %s', (_question, word, path, heading) => {
  expect(findSection(path, heading).toLowerCase()).toContain(word.toLowerCase());
});
