// Draws the attempts of the service against the deadlines of the receiver. The times are those of the code.
import { receiverDefaults } from '../src/core/options.js';
import { attemptsPerCallback, firstRetryMs } from '../src/core/service.js';
import { backoffFactor } from '../src/sandbox/deliveries.js';
import { pen, type Theme } from './pen.js';

const width = 920;
const height = 476;
const left = 186;
const right = 900;

/** Returns the x of a second on an axis that ends at `lastSecond`. */
const scale =
  (lastSecond: number) =>
  (second: number): number =>
    Math.round((left + ((right - left) * second) / lastSecond) * 10) / 10;

const retrySecond = firstRetryMs / 1_000;
const leaseSeconds = receiverDefaults.leaseMs / 1_000;
const handlerSeconds = receiverDefaults.handlerTimeoutMs / 1_000;
const waitSeconds = receiverDefaults.inFlightWaitMs / 1_000;

/** When each attempt comes: the first two as documented, the others as the sandbox guesses. */
function attemptSeconds(): number[] {
  const seconds = [0];
  for (let pause = retrySecond; seconds.length < attemptsPerCallback; pause *= backoffFactor) {
    seconds.push((seconds.at(-1) ?? 0) + pause);
  }
  return seconds;
}

/** The four attempts, and how the first seconds of them are spread over the lanes below. */
function drawAttempts(theme: Theme, lastLaneSecond: number): string[] {
  const { text, line } = pen(theme);
  const seconds = attemptSeconds();
  const last = seconds.at(-1) ?? 0;
  const at = scale(last * 1.04);
  const y = 44;
  const [, second = 0, third = 0] = seconds;
  const parts = [
    `<path d="M${left} ${y}L${at(lastLaneSecond)} ${y}L${right} 112L${right} 446L${left} 446Z" fill="${theme.shade}"/>`,
    text(0, y - 3, 'The service', { bold: true }),
    text(0, y + 14, `makes ${attemptsPerCallback} attempts`, { fill: theme.muted }),
    line(left, y, at(second), y, theme.waits, 'stroke-width="2"'),
    line(at(second) + 12, y, at(third) - 12, y, theme.line, 'stroke-width="2"'),
    line(at(third) + 12, y, at(last) - 12, y, theme.line, 'stroke-width="2"'),
    text((at(third) + at(last)) / 2, y - 22, 'our guess: each pause is twice the one before', {
      anchor: 'middle',
      fill: theme.muted,
      size: 12,
    }),
  ];
  for (const [index, when] of seconds.entries()) {
    const isGuess = index > 1;
    const fill = isGuess ? theme.muted : '#ffffff';
    const circle = isGuess
      ? `fill="none" stroke="${theme.muted}" stroke-width="1.5" stroke-dasharray="3 3"`
      : `fill="${theme.waits}"`;
    const label = `${index === 1 ? 'about ' : ''}${when} s${isGuess ? '?' : ''}`;
    parts.push(
      `<circle cx="${at(when)}" cy="${y}" r="12" ${circle}/>`,
      text(at(when), y + 4.5, String(index + 1), { anchor: 'middle', fill, bold: true }),
      text(at(when), y - 22, label, { anchor: 'middle', fill: isGuess ? theme.muted : theme.text }),
    );
  }
  return parts;
}

/** The seconds before the first retry, in one lane for each of four cases. */
function drawLanes(theme: Theme, at: (second: number) => number): string[] {
  const { text, line, bar, pill, cross } = pen(theme);
  const top = 130;
  const [succeeds, dies, slow, copy] = [176, 242, 312, 390] as const;
  const label = (y: number, first: string, second: string): string =>
    text(0, y - 3, first, { bold: true }) + text(0, y + 14, second, { fill: theme.muted });
  // With an outline in the colour of the ground, so that no mark of the axis runs through the letters.
  const note = (x: number, y: number, content: string): string =>
    text(x, y, content, { fill: theme.muted, size: 12 }).replace(
      '<text ',
      `<text stroke="${theme.shade}" stroke-width="5" paint-order="stroke" `,
    );
  const marks = [0, waitSeconds, leaseSeconds, handlerSeconds, retrySecond];
  return [
    ...marks.map((second) =>
      line(
        at(second),
        top + 12,
        at(second),
        446,
        theme.line,
        second === retrySecond ? 'stroke-width="2"' : 'stroke-dasharray="2 4"',
      ),
    ),
    ...marks.map((second) =>
      text(at(second), top + 4, `${second} s`, {
        anchor: second === 0 ? 'start' : 'middle',
        fill: theme.muted,
        size: 12,
      }),
    ),
    text(at(retrySecond), top - 12, 'first retry', { anchor: 'middle', fill: theme.muted, size: 12 }),

    label(succeeds, 'The handler succeeds', 'and is recorded'),
    bar(at(0), at(3), succeeds, theme.runs, 'solid'),
    pill(at(3) + 6, succeeds, '200', theme.runs),
    note(at(3) + 52, succeeds + 4, 'no retry'),

    label(dies, 'The process dies', `the lease lasts ${leaseSeconds} s`),
    bar(at(0), at(leaseSeconds), dies, theme.lease, 'open'),
    bar(at(0), at(4), dies, theme.runs, 'solid'),
    cross(at(4), dies, theme.fails),
    note(at(leaseSeconds) + 8, dies + 4, 'the claim is free'),
    bar(at(retrySecond), at(retrySecond + 3), dies, theme.runs, 'solid'),
    pill(at(retrySecond + 3) + 6, dies, '200', theme.runs),

    label(slow, 'The handler is slow', `the deadline is ${handlerSeconds} s`),
    bar(at(0), at(25), slow, theme.runs, 'solid'),
    pill(at(handlerSeconds) - 19, slow - 24, '503', theme.fails),
    line(at(handlerSeconds), slow - 13, at(handlerSeconds), slow - 8, theme.fails, 'stroke-width="1.5"'),
    note(at(25) + 6, slow + 4, 'recorded'),
    pill(at(retrySecond) + 6, slow, '200', theme.runs),
    note(at(retrySecond) + 50, slow + 4, 'duplicate'),

    label(copy, 'Two copies arrive', `one waits, up to ${waitSeconds} s`),
    bar(at(0), at(8), copy - 11, theme.runs, 'solid'),
    pill(at(8) + 6, copy - 11, '200', theme.runs),
    bar(at(0), at(8), copy + 13, theme.waits, 'open'),
    pill(at(8) + 6, copy + 13, '200', theme.runs),
    note(at(8) + 52, copy + 17, 'duplicate'),
  ];
}

function drawLegend(theme: Theme): string[] {
  const { text, bar } = pen(theme);
  const y = 464;
  const entry = (x: number, colour: string, style: 'solid' | 'open', content: string): string =>
    bar(x, x + 26, y, colour, style) + text(x + 34, y + 4.5, content, { fill: theme.muted, size: 12 });
  return [
    entry(left, theme.runs, 'solid', 'the handler runs'),
    entry(left + 160, theme.lease, 'open', 'claimed, but the process is dead'),
    entry(left + 412, theme.waits, 'open', 'waits'),
  ];
}

/** Returns the picture as SVG. */
export function drawAttemptsPicture(theme: Theme): string {
  const lastLaneSecond = retrySecond * 1.22;
  const parts = [
    ...drawAttempts(theme, lastLaneSecond),
    ...drawLanes(theme, scale(lastLaneSecond)),
    ...drawLegend(theme),
  ];
  const font = "-apple-system, BlinkMacSystemFont, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif";
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" font-family="${font}">`,
    `<title>The attempts of the service, and the deadlines of the receiver</title>`,
    ...parts,
    '</svg>\n',
  ]
    .join('\n')
    .replaceAll(/\d+\.\d{3,}/g, (number) => String(Math.round(Number(number) * 100) / 100));
}
