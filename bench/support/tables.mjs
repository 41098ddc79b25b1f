/** A table of `{ title, columns, rows, note }` as Markdown, with its cells aligned for those who read the source. */
export function toMarkdown({ title, columns, rows, note }) {
  const lines = [columns, ...rows].map((cells) => cells.map(String));
  const widths = columns.map((_, i) => Math.max(3, ...lines.map((cells) => cells[i].length)));
  const line = (cells) => `| ${cells.map((cell, i) => cell.padEnd(widths[i])).join(' | ')} |`;
  const rule = widths.map((width, i) => (i === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  const text = [`### ${title}`, '', line(lines[0]), line(rule), ...lines.slice(1).map(line)];
  return [...text, ...(note === undefined ? [] : ['', note])].join('\n');
}
