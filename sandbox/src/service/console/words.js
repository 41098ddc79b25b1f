/** A state is a sign and a word, never a colour alone. */
export const signs = { good: '✓', bad: '✗', open: '◌', none: '–', event: '●' };

/** The facts of a callback; none of one that the scenario has cut short. @param {string} body @returns {Facts} */
export function factsIn(body) {
  try {
    return JSON.parse(body).data;
  } catch {
    return {};
  }
}

/** @type {ForTransfer<Attempt[]>} */
export const attemptsOf = ({ events }) => events.flatMap((event) => (event.type === 'attempt' ? [event.attempt] : []));

/** A name of blanks could be neither seen nor clicked. @param {string} externalId */
export const toName = (externalId) => (externalId.trim() ? externalId : JSON.stringify(externalId));

/** @param {object} headers */
const toLines = (headers) => Object.entries(headers).map((header) => header.join(': '));

/** A long header would fill the page. @param {string} line */
const cut = (line) => (line.length > 300 ? `${line.slice(0, 300)}…` : line);

/** The bytes of a request, but for the spaces of its body. @param {URL} url @param {object} headers @param {string} body */
export function toRequest({ pathname, search, host }, headers, body) {
  const data = factsIn(body).status ? JSON.stringify(JSON.parse(body), null, 2) : body;
  const length = new TextEncoder().encode(body).length;
  const lines = toLines({ Host: host, ...headers, 'Content-Length': length }).map(cut);
  return [`POST ${pathname}${search}`, ...lines, '', data].join('\n');
}

/** @param {Attempt['response']} response */
export const toResponse = (response) =>
  'error' in response
    ? response.error
    : [response.status, ...toLines(response.headers ?? {}).map(cut), '', response.body].join('\n');

/** A request as a command for a shell. @param {string} url @param {Record<string, string>} headers @param {string} body */
export function toCurl(url, headers, body) {
  const quote = (/** @type {string} */ text) => `'${text.replaceAll("'", String.raw`'\''`)}'`;
  return [
    `curl -i ${quote(url)}`,
    ...toLines(headers).map((line) => `-H ${quote(line)}`),
    `--data-binary ${quote(body)}`,
  ].join(' \\\n  ');
}
