import { cases, type Reply } from './cases.js';
import type { Host } from './hosts.js';
import { findVersion } from './programs.js';

/** The page of which `npm run hosts` writes a part, from the root of the repository. */
export const pagePath = 'docs/hosts.md';

const [begin, end] = ['<!-- `npm run hosts` writes from here -->\n', '<!-- to here -->\n'];

const toRow = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
const isRow = (text: string): boolean => text.startsWith('| ');
const toHead = (cells: readonly string[]): string[] => [toRow(cells), toRow(cells.map(() => '---'))];

/**
 * Returns the row of a host that responds otherwise than the listener, or the name and the version of one that does
 * not. Throws if a response differs and the host has no reason for it.
 */
export function renderHost(host: Host, replies: readonly Reply[], listener: readonly Reply[]): string {
  const differences = new Map<string, string[]>();
  for (const [index, [name]] of cases.entries()) {
    const reason = findReason(host, name, replies[index], listener[index]);
    if (reason === undefined) continue;
    differences.set(reason, [...(differences.get(reason) ?? []), `${name} ${replies[index]?.status}`]);
  }
  return describeHost(
    host,
    [...differences].map(([reason, responses]) => `${responses.join('; ')}: ${reason}`),
  );
}

/** Returns the part of the page about a host that responds as the page shows. */
export function findHost(page: string, host: Host): string {
  const same = describeHost(host, []);
  return page.split('\n').find((line) => line.startsWith(`| ${same} |`)) ?? same;
}

function describeHost({ name, versionOf, file }: Host, differs: readonly string[]): string {
  const version = versionOf === undefined ? '' : ` ${findVersion(versionOf)}`;
  const title = `[${name}](../examples/hosts/${file})${version}`;
  return differs.length === 0 ? title : toRow([title, differs.join('. ')]);
}

/** Returns why a response differs from that of the listener, or undefined if it is equal. */
function findReason({ name, differs = {} }: Host, case_: string, reply?: Reply, expected?: Reply): string | undefined {
  const isEqual = JSON.stringify(reply) === JSON.stringify(expected);
  const reason = differs[case_];
  if (isEqual && reason !== undefined) {
    throw new Error(`${name}, ${case_}: it responds as the listener does. Remove the reason from test/hosts/hosts.ts.`);
  }
  if (!isEqual && reason === undefined) {
    const [got, wanted] = [JSON.stringify(reply), JSON.stringify(expected)];
    throw new Error(`${name}, ${case_}: expected the response of the listener, ${wanted}, got ${got}.`);
  }
  return reason;
}

/** Returns the page with what `renderHost` returned for each host. */
export function renderPage(page: string, rendered: readonly string[], listener: readonly Reply[]): string {
  const [before, rest] = page.split(begin);
  const [, after] = rest?.split(end) ?? [];
  if (before === undefined || after === undefined) throw new Error(`${pagePath} lacks the marks ${begin}and ${end}`);
  const requests = cases.map(([name], index) => toRow([name, ...renderReply(listener[index])]));
  const lines = [
    ...[...toHead(['request', 'status', 'header', 'body, or its message']), ...requests],
    '',
    `These hosts respond in the same way: ${rendered.filter((each) => !isRow(each)).join(', ')}.`,
    '',
    ...[...toHead(['host', 'what it responds otherwise']), ...rendered.filter(isRow)],
  ];
  return `${before}${begin}\n${lines.join('\n')}\n\n${end}${after}`;
}

function renderReply({ status, retryAfter, allow, body }: Partial<Reply> = {}): string[] {
  const header = allow === undefined ? retryAfter && `Retry-After: ${retryAfter}` : `Allow: ${allow}`;
  return [String(status), header === undefined ? '' : `\`${header}\``, renderBody(body)];
}

/** Returns the message of an error, whose shape the page shows once, and any other body as it is. */
function renderBody(body = '{}'): string {
  const { message } = JSON.parse(body) as { message?: string };
  return message ?? `\`${body}\``;
}
