// `npm run api` writes docs/api; `npm run api -- --check` only says whether it is up to date.
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readExports, renderApi } from './api-pages.js';
import { root } from './entries.js';

const folder = join(root, 'docs/api');
const pages = renderApi(await readExports());

if (process.argv.includes('--check')) {
  const old: string[] = [];
  for (const { file, text } of pages) {
    if ((await readFile(join(folder, file), 'utf8').catch(() => undefined)) !== text) old.push(`docs/api/${file}`);
  }
  if (old.length > 0) {
    process.stderr.write(`Not up to date: ${old.join(', ')}. Run npm run api.\n`);
    process.exitCode = 1;
  }
} else {
  await mkdir(folder, { recursive: true });
  for (const file of await readdir(folder)) await rm(join(folder, file));
  for (const { file, text } of pages) await writeFile(join(folder, file), text);
}
