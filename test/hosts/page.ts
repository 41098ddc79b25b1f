import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cases, type Reply } from './cases.js';
import { hosts, hostsFolder, type Host } from './hosts.js';

/** The page that `npm run hosts` writes, from the root of the repository. */
export const pagePath = 'docs/hosts-matrix.md';

const lock = JSON.parse(readFileSync(join(hostsFolder, 'package-lock.json'), 'utf8')) as {
  packages: Record<string, { version: string } | undefined>;
};

/** Why responses differ, in the order of the hosts. The page numbers them from 1. */
const notes = [...new Set(hosts.flatMap(({ differs = {} }) => Object.values(differs)))];

const toRow = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
const toHead = (cells: readonly string[]): string[] => [toRow(cells), toRow(cells.map(() => '---'))];

/** Returns the row of a host. Throws if a response differs from that of the listener and the host has no reason for it. */
export function renderHost(host: Host, replies: readonly Reply[], listener: readonly Reply[]): string {
  const version = host.versionOf === undefined ? '' : (lock.packages[host.versionOf]?.version ?? '');
  const cells = cases.map(({ name }, index) => renderCell(host, name, replies[index], listener[index]));
  return toRow([`[${host.name}](../examples/hosts/${host.file})`, version, ...cells]);
}

function renderCell({ name, differs = {} }: Host, case_: string, reply?: Reply, expected?: Reply): string {
  const isEqual = JSON.stringify(reply) === JSON.stringify(expected);
  const reason = differs[case_];
  if (isEqual && reason !== undefined) {
    throw new Error(`${name}, ${case_}: it responds as the listener does. Remove the reason from test/hosts/hosts.ts.`);
  }
  if (isEqual) return String(reply?.status);
  if (reason === undefined) {
    const [got, wanted] = [JSON.stringify(reply), JSON.stringify(expected)];
    throw new Error(`${name}, ${case_}: expected the response of the listener, ${wanted}, got ${got}.`);
  }
  return `${reply?.status} (${notes.indexOf(reason) + 1})`;
}

/** Returns the page with these rows of hosts. */
export function renderPage(rows: readonly string[], listener: readonly Reply[]): string {
  const requests = cases.map(({ name, what }, index) => toRow([name, what, ...renderReply(listener[index])]));
  return [
    '# What each host responds',
    '',
    '`npm run hosts` has written this page. It starts every file of [examples/hosts](../examples/hosts) on the loopback, with the',
    'packages of its lock file, and sends the same requests to each. A test compares this page with what the hosts respond.',
    '[hosts.md](hosts.md) shows how to mount the package on each of them.',
    '',
    '## The listener on `node:http`',
    '',
    ...toHead(['request', 'a callback', 'status', 'header', 'body']),
    ...requests,
    '',
    '## Every host',
    '',
    'The numbers are statuses. A response without a note has the same status, body, `Retry-After` and `Allow` as that of the listener.',
    'The router and the listener also close the connection after a body that is too long. On the web, the host decides that.',
    '',
    ...toHead(['host', 'version', ...cases.map(({ name }) => name)]),
    ...rows,
    '',
    ...notes.map((note, index) => `${index + 1}. ${note}`),
    '',
    'Behind AWS Lambda there is no API Gateway here: a server of the tests turns each request into an event. The body of a',
    'request in chunks arrives in base64.',
    '',
  ].join('\n');
}

function renderReply({ status, retryAfter, allow, body }: Partial<Reply> = {}): string[] {
  const header = allow === undefined ? retryAfter && `Retry-After: ${retryAfter}` : `Allow: ${allow}`;
  return [String(status), header === undefined ? '' : `\`${header}\``, `\`${body}\``];
}
